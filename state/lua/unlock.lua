-- unlock: ends a lock for its holder.
-- KEYS 1 lock string: the holder's token, for how long (ms) it may go without a renewal, and until when by the clock of
--   who wrote it
-- ARGV 1 token: of the holder
-- OUT 1 status
-- STATUS OK GONE
-- INV nobody's lock but the holder's own ends
-- COST O(1)
-- VERSION 2
-- INCLUDE hold
if not is_of(redis.call('GET', KEYS[1]), ARGV[1]) then return {'GONE'} end
redis.call('DEL', KEYS[1])
return {'OK'}
