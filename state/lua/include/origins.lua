-- Marks an entry as duplicate_move when the first copy of its move is another record. The newest 20,000 moves are remembered, and journaled
-- under `tag`: which copy counts must be the same after a rebuild, also when the window took the later one first.
local function first_copy(meta, outbox, origins, now, tag, entry)
  local first = tonumber(redis.call('ZSCORE', origins, entry.move_key) or '-1')
  if first >= 0 and first ~= entry.off then
    entry.reason, entry.size = 'duplicate_move', 0
  elseif first < 0 then
    redis.call('ZADD', origins, entry.off, entry.move_key)
    redis.call('ZREMRANGEBYRANK', origins, 0, -20001)
    redis.call('HSET', meta, 'origins', redis.call('ZCARD', origins))
    journal(meta, outbox, now, 'copied', tag, {entry.off}, nil, entry.move_key)
  end
end
