-- close: forgets a tag of a unit, a slice of its open messages at a call; shared bodies stay for the other tags.
-- KEYS 1 meta hash: bytes, c:<tag>, f:<tag>, n:<tag>, g:<tag>, a:<tag>, d:<tag>, x:<tag>
-- KEYS 2 visible zset: offset by next visible ms
-- KEYS 3 delivery hash: offset -> delivery
-- KEYS 4 body hash: offset -> header and record
-- KEYS 5 refs hash: offset -> holders
-- KEYS 6 ahead set: offsets taken
-- KEYS 7 delayed zset: offset by due ms
-- KEYS 8 order zset: group and offset
-- KEYS 9 groups zset: groups, by next ms (FIFO) or by how many are in flight (fair)
-- ARGV 1 tag
-- ARGV 2 slice: messages at most
-- OUT 1 status
-- OUT 2 left: open messages
-- STATUS OK
-- INV other tags are not touched; x:<tag> is there until all of the tag is gone
-- COST O(slice)
-- VERSION 2
-- INCLUDE delivery groups settle
local meta, visible, delivery, body, refs = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local tag = ARGV[1]
redis.call('HDEL', meta, 'c:' .. tag, 'f:' .. tag, 'n:' .. tag, 'g:' .. tag, 'a:' .. tag, 'd:' .. tag)
redis.call('HSET', meta, 'x:' .. tag, 1)
settle(meta, visible, delivery, body, refs, redis.call('ZRANGE', visible, 0, tonumber(ARGV[2]) - 1))
local left = redis.call('ZCARD', visible)
if left == 0 then
  redis.call('DEL', delivery, KEYS[6], KEYS[7], KEYS[8], KEYS[9])
  redis.call('HDEL', meta, 'x:' .. tag)
end
return {'OK', left}
