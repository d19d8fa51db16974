-- Appends one entry to the outbox and returns its seq. `times` is a list or nil; `reason` a word or nil.
local function journal(meta, outbox, now, kind, tag, offsets, times, reason)
  local seq = redis.call('HINCRBY', meta, 'seq', 1)
  redis.call('RPUSH', outbox, cmsgpack.pack({seq, now, kind, tag, offsets, times or 0, reason or ''}))
  return seq
end
-- Adds to what was ever done under a tag: a field of the meta hash for each kind, as Totals of schemas/records.
local function total(meta, kind, tag, by) redis.call('HINCRBY', meta, kind .. ':' .. tag, by) end
