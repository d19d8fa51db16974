-- restore: writes a slice of a rebuild: what is settled above the floor and what is open with its count, lease and
--   mark.
-- KEYS 1 meta hash: epoch, c:<tag>, n:<tag>, g:<tag>, a:<tag>, d:<tag>, and the totals of the tag
-- KEYS 2 ahead set: offsets at or above the cursor already taken
-- KEYS 3 delivery hash: offset -> delivery
-- KEYS 4 visible zset: offset by next visible ms
-- KEYS 5 delayed zset: offset by due ms
-- KEYS 6 order zset: group and offset
-- KEYS 7 groups zset: groups, by next ms (FIFO) or by how many are in flight (fair)
-- ARGV 1 epoch: of the rebuilder
-- ARGV 2 now: ms, the time of the service; 0 = Redis' clock (tests)
-- ARGV 3 tag
-- ARGV 4 cursor
-- ARGV 5 totals: what was ever done under the tag, in the order of include/totals.lua, with a blank between two
-- ARGV 6 settled_count
-- ARGV + settled offsets, then per delivery: offset, nonce, count, first ms, flag, time ms (as in the journal), group
--   (8 bytes, FIFO only)
-- OUT 1 status
-- STATUS OK FENCED
-- INV only the owner's epoch may restore; an open delivery is taken (in ahead, or below the cursor), without its body
-- COST O(slice)
-- VERSION 4
-- INCLUDE clock unit groups totals
local meta, ahead, delivery, visible, delayed = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
if redis.call('HGET', meta, 'epoch') ~= ARGV[1] then return {'FENCED'} end
local now, tag = clock(ARGV[2]), ARGV[3]
redis.call('HSET', meta, 'c:' .. tag, ARGV[4])
local kind = 0
for number in string.gmatch(ARGV[5], '%d+') do
  kind = kind + 1
  if number ~= '0' then redis.call('HSET', meta, KINDS[kind] .. ':' .. tag, number) end
end
local n, touched = tonumber(ARGV[6]), {}
for a = 7, 6 + n, 1000 do redis.call('SADD', ahead, unpack(ARGV, a, math.min(a + 999, 6 + n))) end
for a = 7 + n, #ARGV, 7 do
  local off, time, group = ARGV[a], tonumber(ARGV[a + 5]), ARGV[a + 6]
  local d = {nonce = tonumber(ARGV[a + 1]), count = tonumber(ARGV[a + 2]), first = tonumber(ARGV[a + 3]), time = time,
    group = group}
  d.flag = tonumber(ARGV[a + 4])
  if d.flag == 4 then time = time + PARKED d.time = time end
  delivery_write(delivery, off, d)
  -- What is open below the cursor was deferred, and then brought.
  if tonumber(off) >= tonumber(ARGV[4]) then redis.call('SADD', ahead, off) end
  redis.call('ZADD', visible, time, off)
  if d.nonce == 0 then redis.call('ZADD', delayed, time, off) end
  if group ~= '' then
    group_add(KEYS[6], KEYS[7], tonumber(off), group, time)
    touched[group] = true
  end
end
regroup_all(KEYS[6], KEYS[7], delivery, touched, now)
seal(meta, tag, visible, delivery)
seal_groups(meta, tag, KEYS[6], KEYS[7])
seal_ahead(meta, tag, ahead)
seal_delayed(meta, tag, delayed)
return {'OK'}
