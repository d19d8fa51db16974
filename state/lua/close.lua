-- close: forgets a tag of a unit, a slice of its open messages at a call; shared bodies stay for the other tags.
-- KEYS 1 meta hash: bytes, c:<tag>, f:<tag>, n:<tag>, g:<tag>, a:<tag>, d:<tag>, x:<tag>, w:<tag>, p:<tag>, t:<tag>,
--   far, and the totals of the tag
-- KEYS 2 visible zset: offset by next visible ms
-- KEYS 3 delivery hash: offset -> delivery
-- KEYS 4 body hash: offset -> header and record
-- KEYS 5 refs hash: offset -> holders
-- KEYS 6 ahead set: offsets taken
-- KEYS 7 delayed zset: offset by due ms
-- KEYS 8 order zset: group and offset
-- KEYS 9 groups zset: groups, by next ms (FIFO) or by how many are in flight (fair)
-- KEYS 10 far hash: how many are deferred, by tag and slot
-- KEYS 11 except hash: bitmaps of offsets that are deferred no longer
-- KEYS 12 pointers zset: offset by due ms, of what is deferred and not in the wheel yet
-- ARGV 1 tag
-- ARGV 2 slice: messages at most
-- OUT 1 status
-- OUT 2 left: open messages
-- STATUS OK
-- INV other tags are not touched; x:<tag> is there until all of the tag is gone
-- COST O(slice)
-- VERSION 4
-- INCLUDE unit groups settle far totals
local meta, visible, delivery, body, refs = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local tag, far, except, pointers = ARGV[1], KEYS[10], KEYS[11], KEYS[12]
for _, kind in ipairs({'c:', 'f:', 'n:', 'g:', 'a:', 'd:', 'w:', 'p:', 't:'}) do
  redis.call('HDEL', meta, kind .. tag)
end
for _, kind in ipairs(KINDS) do redis.call('HDEL', meta, kind .. ':' .. tag) end
redis.call('HSET', meta, 'x:' .. tag, 1)
if far_whole(meta, far, except, pointers) then
  for _, field in ipairs(redis.call('HKEYS', far)) do
    if string.match(field, '^s:(%d+):') == tag then redis.call('HDEL', far, field) end
  end
  for _, field in ipairs(redis.call('HKEYS', except)) do
    if string.match(field, '^(%d+):') == tag then redis.call('HDEL', except, field) end
  end
  seal_far(meta, far, except, pointers)
end
settle(meta, visible, delivery, body, refs, redis.call('ZRANGE', visible, 0, tonumber(ARGV[2]) - 1))
local left = redis.call('ZCARD', visible)
if left == 0 then
  redis.call('DEL', delivery, KEYS[6], KEYS[7], KEYS[8], KEYS[9])
  redis.call('HDEL', meta, 'x:' .. tag)
end
return {'OK', left}
