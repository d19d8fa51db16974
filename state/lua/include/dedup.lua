-- FIFO: a message repeats an earlier one when that has the same id and was appended at most WINDOW before. It depends on the log alone:
-- records are looked at once each, in order; `seen` is the next one. ids has the ids by age, for forgetting.
-- WINDOW: ms, as vocabulary.DEDUP_WINDOW_MS.
local WINDOW = 300000
-- The offset of the message that this one repeats, or nil; then its id is remembered.
local function dedup_first(dedup, ids, id, off, at)
  local packed = redis.call('HGET', dedup, id)
  if packed then
    local then_at, first = struct.unpack('>I8I8', packed)
    if at - then_at <= WINDOW then return first end
  end
  redis.call('HSET', dedup, id, struct.pack('>I8I8', at, off))
  redis.call('RPUSH', ids, id)
  return nil
end
-- Forgets some ids that can't be repeated any more.
local function dedup_forget(dedup, ids, at)
  for _ = 1, 20 do
    local id = redis.call('LINDEX', ids, 0)
    local packed = id and redis.call('HGET', dedup, id)
    if not id then return end
    if packed then
      local then_at = struct.unpack('>I8', packed)
      if at - then_at <= WINDOW then return end
      redis.call('HDEL', dedup, id)
    end
    redis.call('LPOP', ids)
  end
end
-- Forgets the ids of messages below an offset; returns how many are left. What is left of them in `ids` is dropped by and by.
local function dedup_forget_below(dedup, below)
  local all = redis.call('HGETALL', dedup)
  local left = #all / 2
  for i = 1, #all, 2 do
    local _, off = struct.unpack('>I8I8', all[i + 1])
    if off < below then left = left - redis.call('HDEL', dedup, all[i]) end
  end
  return left
end
