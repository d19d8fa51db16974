-- disown: gives up the loader's lease, unless entries are still waiting in the outbox.
-- KEYS 1 meta hash: epoch, owner_until
-- KEYS 2 outbox list: journal entries
-- ARGV 1 epoch
-- OUT 1 status
-- STATUS OK BUSY FENCED
-- INV an outbox with entries keeps its owner
-- COST O(1)
-- VERSION 1
local meta, outbox = KEYS[1], KEYS[2]
if redis.call('HGET', meta, 'epoch') ~= ARGV[1] then return {'FENCED'} end
if redis.call('LLEN', outbox) > 0 then return {'BUSY'} end
redis.call('HSET', meta, 'owner_until', 0)
return {'OK'}
