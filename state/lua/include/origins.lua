-- Marks an entry as duplicate_move when the first copy of its move is another record. The newest 20,000 moves are remembered.
local function first_copy(meta, origins, entry)
  local first = tonumber(redis.call('ZSCORE', origins, entry.move_key) or '-1')
  if first >= 0 and first ~= entry.off then
    entry.reason, entry.size = 'duplicate_move', 0
  elseif first < 0 then
    redis.call('ZADD', origins, entry.off, entry.move_key)
    redis.call('ZREMRANGEBYRANK', origins, 0, -20001)
    redis.call('HSET', meta, 'origins', redis.call('ZCARD', origins))
  end
end
