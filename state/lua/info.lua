-- info: exact counts of what each tag has open in the window, and its cursor. Remembers the floor, and journals it when
--   it has risen.
-- KEYS 1 meta hash: generation, seq, fifo, c:<tag> cursors, f:<tag> floors, n:<tag>, a:<tag>, d:<tag>, t:<tag>,
--   unfiled, and the totals of each tag
-- KEYS 2 outbox list: journal entries
-- KEYS + per tag: visible zset, delayed zset, delivery hash, groups zset
-- ARGV 1 generation
-- ARGV 2 now: ms, the time of the service; 0 = Redis' clock (tests)
-- ARGV + tag ids
-- OUT 1 status
-- OUT 2 tags: {ready, delayed, leased, parked, cursor, floor, how many are taken ahead of the cursor, how many are
--   deferred, lowest open offset, how many are set back, how many groups are in flight, {noisy group ...}, and what
--   was ever done under it in the order of include/totals.lua, per tag}; of more than 2000 open messages the lowest
--   is the floor, and of more than 2000 that are not ready of a FIFO unit only the groups of 2000 are counted
-- STATUS OK LOST
-- INV floor <= every open offset of its tag, but for what was brought; <= all that is deferred and not in the wheel; it
--   never falls
-- COST O(tags x min(open, 2000 + steps of the floor))
-- VERSION 9
-- INCLUDE clock unit groups fair totals
local meta, outbox = KEYS[1], KEYS[2]
local now = clock(ARGV[2])
local out, unfiled = {}, tonumber(redis.call('HGET', meta, 'unfiled') or math.huge)
local function floor_of(id, visible, cursor, open)
  local lowest = math.huge
  local floor = math.min(tonumber(redis.call('HGET', meta, 'f:' .. id)), cursor)
  -- What is open below the floor was deferred, and then brought.
  local found = math.max(floor, math.min(cursor, unfiled))
  if open > 0 and open <= 2000 then
    for _, member in ipairs(redis.call('ZRANGE', visible, 0, -1)) do
      local off = tonumber(member)
      if off >= floor then found = math.min(found, off) end
      lowest = math.min(lowest, off)
    end
  elseif open > 0 then
    local most = found
    found = floor
    local steps = 0
    while found < most and steps < 5000 and not redis.call('ZSCORE', visible, found) do
      found, steps = found + 1, steps + 1
    end
  end
  if found > floor then
    redis.call('HSET', meta, 'f:' .. id, found)
    journal(meta, outbox, now, 'floor', tonumber(id), {found})
  end
  return found, math.min(lowest, found)
end
-- FIFO: the groups of which a message is leased. When the first of a group is visible is no answer: it may wait for a
-- delay, or be there again while one behind it is leased.
local function groups_leased(visible, delivery)
  local some = redis.call('ZRANGEBYSCORE', visible, now + 1, '(' .. PARKED, 'LIMIT', 0, 2000)
  local found, count = {}, 0
  for _, packed in ipairs(#some > 0 and redis.call('HMGET', delivery, unpack(some)) or {}) do
    local d = delivery_of(packed)
    if d and d.nonce ~= 0 and d.flag == 0 and not found[d.group] then found[d.group], count = true, count + 1 end
  end
  return count
end
for i = 3, #ARGV do
  local k = 2 + (i - 3) * 4
  local visible, delayed = KEYS[k + 1], KEYS[k + 2]
  local unit, refused = guard(meta, ARGV[1], ARGV[i], visible, KEYS[k + 3])
  if refused then return refused end
  local cursor = unit.cursor
  if not delayed_whole(meta, ARGV[i], delayed) or not redis.call('HGET', meta, 'f:' .. ARGV[i]) then
    return broken(meta)
  end
  if redis.call('ZREMRANGEBYSCORE', delayed, '-inf', now) > 0 then seal_delayed(meta, ARGV[i], delayed) end
  local open = redis.call('ZCARD', visible)
  local ready = redis.call('ZCOUNT', visible, '-inf', now)
  local waiting, parked = redis.call('ZCARD', delayed), redis.call('ZCOUNT', visible, PARKED, '+inf')
  local deferred = tonumber(redis.call('HGET', meta, 't:' .. ARGV[i]) or '0')
  local floor, lowest = floor_of(ARGV[i], visible, cursor, open)
  local ahead = tonumber(unit.ahead or '0')
  local leased = open - ready - waiting - parked
  local set_back, in_groups, noisy_groups = 0, 0, {}
  if unit.fifo then in_groups = groups_leased(visible, KEYS[k + 3]) end
  if unit.fair then
    set_back, in_groups = redis.call('ZCOUNT', visible, '-inf', '(0'), groups_in_flight(KEYS[k + 4])
    noisy_groups = noisy_ones(KEYS[k + 4])
  end
  for _, v in ipairs({ready, waiting, leased, parked, cursor, floor, ahead, deferred, lowest}) do out[#out + 1] = v end
  for _, v in ipairs({set_back, in_groups, noisy_groups}) do out[#out + 1] = v end
  for _, v in ipairs(totals_of(meta, ARGV[i])) do out[#out + 1] = v end
end
return {'OK', out}
