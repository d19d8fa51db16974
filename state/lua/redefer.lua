-- redefer: writes what a rebuild knows of the deferred messages of a tag; a slice of those that are excepted.
-- KEYS 1 meta hash: epoch, far, w:<tag>, p:<tag>, t:<tag>
-- KEYS 2 far hash: how many are deferred, by tag and slot
-- KEYS 3 except hash: bitmaps of offsets that are deferred no longer
-- KEYS 4 pointers zset: offset by due ms, of what is deferred and not in the wheel yet
-- ARGV 1 epoch: of the rebuilder
-- ARGV 2 tag
-- ARGV 3 mark: ms:offset
-- ARGV 4 bound: offset
-- ARGV 5 slot_count
-- ARGV + slots and how many are deferred in each, then offsets that are excepted and the slot of each
-- OUT 1 status
-- STATUS OK FENCED
-- INV only the owner's epoch may redefer; what is at or above the cursor is deferred by the loader
-- COST O(slots + excepted)
-- VERSION 1
-- INCLUDE unit far
local meta, far, except, pointers = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
if redis.call('HGET', meta, 'epoch') ~= ARGV[1] then return {'FENCED'} end
local tag, last = ARGV[2], 5 + 2 * tonumber(ARGV[5])
redis.call('HSET', meta, 'w:' .. tag, ARGV[3], 'p:' .. tag, ARGV[4])
for a = 6, last, 2 do
  redis.call('HSET', far, 's:' .. tag .. ':' .. ARGV[a], ARGV[a + 1])
  redis.call('HINCRBY', meta, 't:' .. tag, ARGV[a + 1])
end
for a = last + 1, #ARGV, 2 do set_excepted(except, tag, tonumber(ARGV[a + 1]) * SLOT, tonumber(ARGV[a])) end
seal_far(meta, far, except, pointers)
return {'OK'}
