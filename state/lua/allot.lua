-- allot: gives a worker a part of what may be done within this second, by all workers together.
-- KEYS 1 quota hash: second, used
-- ARGV 1 now: ms, 0 = Redis' clock
-- ARGV 2 limit: of a second
-- ARGV 3 wanted: how many
-- OUT 1 status
-- OUT 2 granted: how many
-- OUT 3 left_ms: until the next second
-- STATUS OK
-- INV within a second of Redis' clock no more than limit is granted while Redis keeps the key
-- COST O(1)
-- VERSION 1
-- INCLUDE clock
local now = clock(ARGV[1])
local second = math.floor(now / 1000)
local q = redis.call('HMGET', KEYS[1], 'second', 'used')
local used = tonumber(q[1] or '-1') == second and tonumber(q[2]) or 0
local granted = math.max(0, math.min(tonumber(ARGV[3]), tonumber(ARGV[2]) - used))
redis.call('HSET', KEYS[1], 'second', second, 'used', used + granted)
redis.call('PEXPIRE', KEYS[1], 2000)
return {'OK', granted, (second + 1) * 1000 - now}
