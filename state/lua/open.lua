-- open: makes a unit serve: sets its generation, and the cursor of each tag it does not have yet. Idempotent.
-- KEYS 1 meta hash: generation, seq, c:<tag>
-- ARGV 1 generation
-- ARGV 2 epoch: of the rebuilder, 0 = a new queue or tag (refused if the unit is of another generation)
-- ARGV 3 seq: at least this is used up
-- ARGV + per tag: id, first offset
-- OUT {status}
-- STATUS OK FENCED LOST
-- INV a cursor that is there is never changed
-- COST O(tags)
-- VERSION 1
local meta = KEYS[1]
local generation = redis.call('HGET', meta, 'generation')
if ARGV[2] == '0' then
  if generation and generation ~= ARGV[1] then return {'LOST'} end
elseif redis.call('HGET', meta, 'epoch') ~= ARGV[2] then
  return {'FENCED'}
end
local seq = tonumber(redis.call('HGET', meta, 'seq') or '0')
if tonumber(ARGV[3]) > seq then redis.call('HSET', meta, 'seq', ARGV[3]) end
for a = 4, #ARGV, 2 do
  redis.call('HSETNX', meta, 'c:' .. ARGV[a], ARGV[a + 1])
end
redis.call('HSET', meta, 'generation', ARGV[1])
return {'OK'}
