-- keep: renews a lock for its holder.
-- KEYS 1 lock string: the holder's token, with a time to live
-- ARGV 1 token: of the holder
-- ARGV 2 hold_ms: the lock ends by itself so long from now
-- OUT 1 status
-- STATUS OK GONE
-- INV nobody's lock but the holder's own changes
-- COST O(1)
-- VERSION 1
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return {'GONE'} end
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return {'OK'}
