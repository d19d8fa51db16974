-- file: forgets pointers that the wheel has.
-- KEYS 1 meta hash: epoch, far, unfiled
-- KEYS 2 far hash: how many are deferred, by tag and slot
-- KEYS 3 except hash: bitmaps of offsets that are deferred no longer
-- KEYS 4 pointers zset: offset by due ms, of what is deferred and not in the wheel yet
-- ARGV 1 epoch
-- ARGV + offsets
-- OUT 1 status
-- STATUS OK FENCED
-- INV a pointer is forgotten only after the wheel has it; until then no floor passes its message
-- COST O(pointers)
-- VERSION 1
-- INCLUDE unit far
local meta, far, except, pointers = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
if redis.call('HGET', meta, 'epoch') ~= ARGV[1] then return {'FENCED'} end
local whole = far_whole(meta, far, except, pointers)
for first = 2, #ARGV, 1000 do redis.call('ZREM', pointers, unpack(ARGV, first, math.min(first + 999, #ARGV))) end
local low = math.huge
for _, member in ipairs(redis.call('ZRANGE', pointers, 0, -1)) do low = math.min(low, tonumber(member)) end
if low < math.huge then redis.call('HSET', meta, 'unfiled', low) else redis.call('HDEL', meta, 'unfiled') end
if whole then seal_far(meta, far, except, pointers) end
return {'OK'}
