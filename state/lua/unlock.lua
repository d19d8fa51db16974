-- unlock: ends a lock for its holder.
-- KEYS 1 lock string: the holder's token, with a time to live
-- ARGV 1 token: of the holder
-- OUT 1 status
-- STATUS OK GONE
-- INV nobody's lock but the holder's own ends
-- COST O(1)
-- VERSION 1
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return {'GONE'} end
redis.call('DEL', KEYS[1])
return {'OK'}
