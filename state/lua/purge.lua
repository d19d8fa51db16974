-- purge: settles all below an offset under every tag given, leased or not, loaded, deferred or not. What is sent later
--   repeats none of it.
-- KEYS 1 meta hash: generation, seq, bytes, fifo, seen, dedups, c:<tag>, n:<tag>, g:<tag>, a:<tag>, d:<tag>, p:<tag>,
--   t:<tag>, far, unfiled
-- KEYS 2 body hash: offset -> header and record
-- KEYS 3 refs hash: offset -> holders
-- KEYS 4 outbox list: journal entries
-- KEYS 5 dedup hash: id -> when (ms) and offset, FIFO only
-- KEYS 6 pending hash: offset -> record that came before the one it follows, FIFO only
-- KEYS 7 far hash: how many are deferred, by tag and slot
-- KEYS 8 except hash: bitmaps of offsets that are deferred no longer
-- KEYS 9 pointers zset: offset by due ms, of what is deferred and not in the wheel yet
-- KEYS + per tag: visible zset, ahead set, delayed zset, delivery hash, order zset, groups zset
-- ARGV 1 generation
-- ARGV 2 now: ms, the time of the service; 0 = Redis' clock (tests)
-- ARGV 3 below: offset
-- ARGV + tag ids
-- OUT 1 status
-- OUT 2 count: of those that were open in the window
-- STATUS OK LOST
-- INV nothing at or above the offset changes; where something is deferred, all that the window has taken by now is
--   below it
-- COST O(open x tags, and ids)
-- VERSION 5
-- INCLUDE clock unit groups fair settle dedup far
local meta, body, refs, outbox, dedup, pending = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6]
local far, except, pointers = KEYS[7], KEYS[8], KEYS[9]
local now, below = clock(ARGV[2]), tonumber(ARGV[3])
local m = redis.call('HMGET', meta, 'fifo', 'seen', 'dedups')
local fifo = m[1] == '1'
local units = {}
for i = 4, #ARGV do
  local k = 9 + (i - 4) * 6
  local unit, refused = guard(meta, ARGV[1], ARGV[i], KEYS[k + 1], KEYS[k + 4], KEYS[k + 5], KEYS[k + 6])
  if refused then return refused end
  units[i] = unit
end
if not far_whole(meta, far, except, pointers) then return broken(meta) end
-- How many are deferred is known by their due times, not by their offsets: so all of them go.
if redis.call('EXISTS', far, except, pointers) > 0 then
  for i = 4, #ARGV do
    below = math.max(below, units[i].cursor)
    for _, member in ipairs(redis.call('SMEMBERS', KEYS[9 + (i - 4) * 6 + 2])) do
      below = math.max(below, tonumber(member) + 1)
    end
    redis.call('HDEL', meta, 't:' .. ARGV[i])
  end
  redis.call('DEL', far, except, pointers)
  redis.call('HDEL', meta, 'unfiled')
  seal_far(meta, far, except, pointers)
end
if fifo and m[3] ~= tostring(redis.call('HLEN', dedup)) then return broken(meta) end
local count = 0
for i = 4, #ARGV do
  local k, unit = 9 + (i - 4) * 6, units[i]
  local visible, ahead, delayed, delivery, order = KEYS[k + 1], KEYS[k + 2], KEYS[k + 3], KEYS[k + 4], KEYS[k + 5]
  local touched, gone = {}, {}
  for _, member in ipairs(redis.call('ZRANGE', visible, 0, -1)) do
    local off = tonumber(member)
    if off < below then
      local d = (unit.fifo or unit.fair) and delivery_read(delivery, off)
      if unit.fifo then settle_ordered(order, off, d.group, touched) else leave(order, KEYS[k + 6], off, d) end
      redis.call('ZREM', delayed, off)
      gone[#gone + 1] = off
    end
  end
  settle(meta, visible, delivery, body, refs, gone)
  count = count + #gone
  for _, member in ipairs(redis.call('SMEMBERS', ahead)) do
    if tonumber(member) < below then redis.call('SREM', ahead, member) end
  end
  if unit.cursor < below then
    local cursor = below
    while redis.call('SREM', ahead, cursor) == 1 do cursor = cursor + 1 end
    redis.call('HSET', meta, 'c:' .. ARGV[i], cursor)
  end
  seal(meta, ARGV[i], visible, delivery)
  seal_ahead(meta, ARGV[i], ahead)
  seal_delayed(meta, ARGV[i], delayed)
  if unit.fifo then regroup_all(order, KEYS[k + 6], delivery, touched, now) end
  if unit.fifo or unit.fair then seal_groups(meta, ARGV[i], order, KEYS[k + 6]) end
  redis.call('HSET', meta, 'p:' .. ARGV[i], math.max(below, mark_of(meta, ARGV[i]).bound))
  journal(meta, outbox, now, 'purged', tonumber(ARGV[i]), {below})
end
if fifo then
  redis.call('HSET', meta, 'dedups', dedup_forget_below(dedup, below))
  -- The log begins at the offset now, and so does its order. An unknown `seen` is found by the loader, there.
  local seen = tonumber(m[2] or '-1')
  if seen >= 0 and seen < below then redis.call('HSET', meta, 'seen', below) end
  for _, off in ipairs(redis.call('HKEYS', pending)) do
    if tonumber(off) < below then redis.call('HDEL', pending, off) end
  end
end
return {'OK', count}
