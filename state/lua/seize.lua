-- seize: takes a unit out of service and its loader's lease away, to rebuild it: every verb answers LOST from now on.
-- KEYS 1 meta hash: generation, owner, owner_until, owner_ms, epoch
-- ARGV 1 now: ms, the time of the service; 0 = Redis' clock (tests)
-- ARGV 2 worker: who rebuilds
-- ARGV 3 lease_ms
-- OUT 1 status
-- OUT 2 epoch: the new one
-- STATUS OK
-- INV the outbox stays as it is, and nothing is added to it until the unit serves again: what was not drained yet can
--   be
-- COST O(1)
-- VERSION 2
-- INCLUDE clock
local meta, now = KEYS[1], clock(ARGV[1])
local epoch = math.max(tonumber(redis.call('HGET', meta, 'epoch') or '0') + 1, now)
redis.call('HDEL', meta, 'generation')
redis.call('HSET', meta, 'owner', ARGV[2], 'epoch', epoch, 'owner_until', now + tonumber(ARGV[3]), 'owner_ms', ARGV[3])
return {'OK', epoch}
