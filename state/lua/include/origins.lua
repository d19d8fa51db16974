-- MOVES: how many are remembered, as vocabulary.REMEMBERED_MOVES.
local MOVES = 20000
-- Marks an entry as duplicate_move when the first copy of its move is another record. The newest MOVES are remembered,
-- and journaled under `tag`: which copy counts must be the same after a rebuild, also when the window took the later
-- one first.
local function first_copy(meta, outbox, origins, now, tag, entry)
  local first = tonumber(redis.call('ZSCORE', origins, entry.move_key) or '-1')
  if first >= 0 and first ~= entry.off then
    entry.reason, entry.size = 'duplicate_move', 0
  elseif first < 0 then
    redis.call('ZADD', origins, entry.off, entry.move_key)
    redis.call('ZREMRANGEBYRANK', origins, 0, -MOVES - 1)
    redis.call('HSET', meta, 'origins', redis.call('ZCARD', origins))
    journal(meta, outbox, now, 'copied', tag, {entry.off}, nil, entry.move_key)
  end
end
-- Which copy of a move counts must be the same after a rebuild, so it is the first in the log: one that comes early is
-- left to the loader.
local function early_copy(entry, tags, scan_from)
  if entry.move_key == '' or scan_from >= 0 then return false end
  for _, tag in ipairs(tags) do if tag.cursor >= entry.off then return false end end
  return true
end
