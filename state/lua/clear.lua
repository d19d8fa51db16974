-- clear: empties a unit before it is rebuilt; only its loader's lease stays.
-- KEYS 1 meta hash: owner, owner_until, owner_ms, epoch
-- KEYS + every other key of the unit and its tags
-- ARGV 1 epoch: of the rebuilder
-- OUT 1 status
-- STATUS OK FENCED
-- INV only the owner's epoch may clear, and all at once: never what another rebuilder has restored
-- COST O(keys); the memory is freed by another thread
-- VERSION 2
local meta = KEYS[1]
if redis.call('HGET', meta, 'epoch') ~= ARGV[1] then return {'FENCED'} end
local kept = redis.call('HMGET', meta, 'owner', 'owner_until', 'owner_ms')
redis.call('UNLINK', unpack(KEYS, 1, #KEYS))
redis.call('HSET', meta, 'owner', kept[1] or '', 'owner_until', kept[2] or 0, 'owner_ms', kept[3] or 0, 'epoch',
  ARGV[1])
return {'OK'}
