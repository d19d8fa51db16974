-- keep: renews a lock for its holder.
-- KEYS 1 lock string: the holder's token, for how long (ms) it may go without a renewal, and until when by the clock of
--   who wrote it
-- ARGV 1 now: ms, the time of the service; 0 = Redis' clock (tests)
-- ARGV 2 token: of the holder
-- ARGV 3 hold_ms: how long it may go without the next renewal
-- OUT 1 status
-- STATUS OK GONE
-- INV nobody's lock but the holder's own changes
-- COST O(1)
-- VERSION 2
-- INCLUDE clock hold
if not is_of(redis.call('GET', KEYS[1]), ARGV[2]) then return {'GONE'} end
hold(KEYS[1], ARGV[2], tonumber(ARGV[3]), clock(ARGV[1]))
return {'OK'}
