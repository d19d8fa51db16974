-- FIFO: a message repeats an earlier one when that has the same id, was appended at most WINDOW before, and repeats
-- none itself. It depends on the log alone: records are looked at once each, in order; `seen` is the next one. ids has
-- the ids by age, for forgetting. Where the order is found again, the first message of an id may be in doubt: what came
-- before it was not looked at, so it may be a repeat itself. So may each that follows it within WINDOW. What was
-- appended until then is delivered rather than taken for a repeat of these.
-- WINDOW: ms, as vocabulary.DEDUP_WINDOW_MS.
local WINDOW = 300000
-- An id packs to when and offset of its first message; in doubt, of the newest, and one byte more.
local SURE = 16
-- When an id was met last, or nil; the offset of the message that one of this id repeats, or nil; whether that one is
-- in doubt.
local function dedup_known(dedup, id, at)
  local packed = redis.call('HGET', dedup, id)
  if not packed then return nil end
  local then_at, first = struct.unpack('>I8I8', packed)
  if at - then_at > WINDOW then return then_at, nil, false end
  if #packed > SURE then return then_at, nil, true end
  return then_at, first, false
end
-- The offset of the message that this one repeats, or nil; then its id is remembered. `f` is {dedup, ids, sure_at,
-- sure_from}: an id that was not met before is in doubt before the time sure_at; a message in doubt is an id's first
-- from the offset sure_from on.
local function dedup_first(f, id, off, at)
  local then_at, first, doubt = dedup_known(f.dedup, id, at)
  if first then return first end
  doubt = off < f.sure_from and (doubt or not then_at and at < f.sure_at)
  -- The clock of another broker may be behind.
  local last = doubt and math.max(at, then_at or 0) or at
  redis.call('HSET', f.dedup, id, struct.pack('>I8I8', last, off) .. (doubt and '?' or ''))
  if not (doubt and then_at) then redis.call('RPUSH', f.ids, id) end
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
      if at - then_at <= WINDOW then
        -- One in doubt may be younger than its place says.
        if #packed > SURE then redis.call('RPUSH', ids, redis.call('LPOP', ids)) end
        return
      end
      redis.call('HDEL', dedup, id)
    end
    redis.call('LPOP', ids)
  end
end
-- Forgets the ids of messages below an offset; returns how many are left. What is left of them in `ids` is dropped by
-- and by.
local function dedup_forget_below(dedup, below)
  local all = redis.call('HGETALL', dedup)
  local left = #all / 2
  for i = 1, #all, 2 do
    local _, off = struct.unpack('>I8I8', all[i + 1])
    if off < below then left = left - redis.call('HDEL', dedup, all[i]) end
  end
  return left
end
