-- lock: gives a lock among workers to one of them, unless somebody has it who renews it.
-- KEYS 1 lock string: the holder's token, for how long (ms) it may go without a renewal, and until when by the clock of
--   who wrote it
-- ARGV 1 now: ms, the time of the service; 0 = Redis' clock (tests)
-- ARGV 2 token: of who asks
-- ARGV 3 hold_ms: how long it may go without a renewal
-- ARGV 4 seen: the value that its holder has not renewed for its whole time, '' = none; while it is the same the lock
--   is free
-- OUT 1 status
-- OUT 2 held: BUSY the value
-- STATUS OK BUSY
-- INV one holder at a time while Redis keeps the key
-- COST O(1)
-- VERSION 2
-- INCLUDE clock hold
local now, hold_ms, held = clock(ARGV[1]), tonumber(ARGV[3]), redis.call('GET', KEYS[1])
if held and held ~= ARGV[4] then
  local until_ms = string.match(held, ' (%d+)$')
  if not until_ms or tonumber(until_ms) > now then return {'BUSY', held} end
end
hold(KEYS[1], ARGV[2], hold_ms, now)
return {'OK', ''}
