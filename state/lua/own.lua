-- own: takes or renews the loader's lease of a unit. A new owner gets a higher epoch, which fences the one before.
-- KEYS 1 meta hash: generation, owner, owner_until, owner_ms, epoch
-- ARGV 1 now: ms, the time of the service; 0 = Redis' clock (tests)
-- ARGV 2 worker: who asks
-- ARGV 3 lease_ms
-- ARGV 4 seen: the beat that the owner has not renewed for its whole lease, '' = none; while it is the same the lease
--   is over
-- OUT 1 status
-- OUT 2 number: OWNED the epoch, OTHER ms until the other's lease ends
-- OUT 3 generation: '' = the unit does not serve
-- OUT 4 beat: OTHER what the owner changes with each renewal
-- OUT 5 owner_ms: OTHER for how long it may go without one
-- STATUS OWNED OTHER
-- INV one owner at a time; the epoch only grows, also when Redis was emptied; who renews late keeps it unless another
--   took the unit
-- COST O(1)
-- VERSION 3
-- INCLUDE clock
local meta = KEYS[1]
local now, worker, lease_ms = clock(ARGV[1]), ARGV[2], tonumber(ARGV[3])
local held = redis.call('HMGET', meta, 'owner', 'owner_until', 'epoch', 'generation', 'owner_ms')
local left = tonumber(held[2] or '0') - now
local epoch = tonumber(held[3] or '0')
-- An owner that was late, and that nobody has replaced, stays the one that it was; not one that gave the unit up.
if held[1] ~= worker or held[2] == '0' then
  if held[1] and left > 0 and ARGV[4] ~= held[2] then
    return {'OTHER', left, held[4] or '', held[2], tonumber(held[5] or ARGV[3])}
  end
  epoch = math.max(epoch + 1, now)
  redis.call('HSET', meta, 'owner', worker, 'epoch', epoch)
end
redis.call('HSET', meta, 'owner_until', now + lease_ms, 'owner_ms', lease_ms)
return {'OWNED', epoch, held[4] or '', '', 0}
