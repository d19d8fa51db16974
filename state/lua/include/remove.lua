-- One message under one tag, for what ends it or changes it by its id. `keys`: the tag's, as of load. `due`: when it is
-- due if it is far and the tag wants it, else 0. Nil = it is settled, or not wanted; or nil and the reply to give.
-- place: window, deferred or beyond.
local function standing(meta, except, generation, tag, keys, off, due)
  local unit, refused = guard(meta, generation, tag, keys[1], keys[4], keys[5], keys[6])
  if refused then return nil, refused end
  if not ahead_whole(unit, keys[2]) then return nil, broken(meta) end
  local it = {tag = tag, unit = unit, keys = keys, due = due}
  local time = redis.call('ZSCORE', keys[1], off)
  if time then
    it.place, it.time, it.d = 'window', math.abs(tonumber(time)), delivery_read(keys[4], off)
  elseif off >= unit.cursor and redis.call('SISMEMBER', keys[2], off) == 0 then
    it.place = 'beyond'
  elseif due > 0 and is_deferred(mark_of(meta, tag), except, tag, due, off) then
    it.place, it.time = 'deferred', due
  else
    return nil
  end
  return it
end
-- Whether somebody may have been given it under this tag, or is about to be. `due`: of the message, as it was sent.
local function given_or_due(it, now, due)
  local d = it.d
  return (it.time or due) <= now or d and (d.nonce ~= 0 or d.count > 0 or d.flag ~= 0)
end
-- Settles it; true when the next message of its group may be leased now. The caller journals, and seals what is of the
-- unit.
local function remove(meta, body, refs, far, except, now, it, off)
  local keys, tag, touched = it.keys, it.tag, {}
  if it.place == 'window' then
    settle(meta, keys[1], keys[4], body, refs, {off})
    redis.call('ZREM', keys[3], off)
    if it.unit.fifo then settle_ordered(keys[5], off, it.d.group, touched) else leave(keys[5], keys[6], off, it.d) end
  elseif it.place == 'beyond' then
    redis.call('SADD', keys[2], off)
    -- It is taken now, and was not deferred.
    if it.due > 0 then set_excepted(except, tag, it.due, off) end
  else
    set_excepted(except, tag, it.due, off)
    count_deferred(meta, far, tag, {it.due}, -1)
  end
  seal(meta, tag, keys[1], keys[4])
  seal_ahead(meta, tag, keys[2])
  seal_delayed(meta, tag, keys[3])
  local free = it.unit.fifo and regroup_all(keys[5], keys[6], keys[4], touched, now)
  if it.unit.fifo or it.unit.fair then seal_groups(meta, tag, keys[5], keys[6]) end
  return free
end
-- The times and the reason of its journal entry.
local function told(it)
  if it.place == 'window' or it.due == 0 then return nil, nil end
  return {it.due}, it.place == 'beyond' and 'not_loaded' or nil
end
