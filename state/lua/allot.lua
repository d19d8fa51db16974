-- allot: gives a worker a part of what may be done within this span of time, by all workers together.
-- KEYS 1 quota hash: span, used
-- ARGV 1 now: ms, the time of the service; 0 = Redis' clock (tests)
-- ARGV 2 limit: of a span
-- ARGV 3 wanted: how many
-- ARGV 4 span: ms; spans are counted since 1970
-- ARGV 5 least: with fewer nothing is granted, for whoever asks needs so many
-- OUT 1 status
-- OUT 2 granted: how many
-- OUT 3 left_ms: until the next span
-- OUT 4 used: of the span, with what is granted
-- STATUS OK
-- INV within a span, which the first worker in it begins for all, no more than limit is granted while Redis keeps the
--   key
-- COST O(1)
-- VERSION 5
-- INCLUDE clock
local now = clock(ARGV[1])
local length = tonumber(ARGV[4])
local span = math.floor(now / length)
local q = redis.call('HMGET', KEYS[1], 'span', 'used')
local last = tonumber(q[1] or '-1')
-- A worker whose clock is a little ahead has begun the next span: it is the same for all.
if last == span + 1 then span = last end
local used = last == span and tonumber(q[2]) or 0
local granted = math.max(0, math.min(tonumber(ARGV[3]), tonumber(ARGV[2]) - used))
if granted < tonumber(ARGV[5]) then
  granted = 0
end
redis.call('HSET', KEYS[1], 'span', span, 'used', used + granted)
-- An hour more than it counts: a clock of Redis that is set ahead must not end it.
redis.call('PEXPIRE', KEYS[1], 2 * length + 3600000)
return {'OK', granted, (span + 1) * length - now, used + granted}
