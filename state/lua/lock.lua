-- lock: gives a lock among workers to one of them for a time, unless somebody has it.
-- KEYS 1 lock string: the holder's token, with a time to live
-- ARGV 1 token: of who asks
-- ARGV 2 hold_ms: the lock ends by itself after so long
-- OUT 1 status
-- STATUS OK BUSY
-- INV one holder at a time while Redis keeps the key
-- COST O(1)
-- VERSION 1
if redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then return {'OK'} end
return {'BUSY'}
