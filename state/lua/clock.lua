-- clock: what the time of the service is: Redis' clock and an offset, which a worker replaces when that clock was set
--   or nobody knows one.
-- KEYS 1 clock hash: offset (ms), version (a number for each offset that was written), votes, log, log_at
-- ARGV 1 time: ms, 0 = Redis' clock
-- ARGV 2 service: what the clock of whoever asks shows, 0 = it shows nothing
-- ARGV 3 bound: ms; within it this is a vote that Redis' clock and the offset are right
-- ARGV 4 version: that is to be replaced, 0 = none may be there, '' = nothing is replaced
-- ARGV 5 offset: the new one
-- ARGV 6 next: its version
-- ARGV 7 log: how far (ms) the log's clock is ahead of that of the service, '' = whoever asks does not know
-- OUT 1 status
-- OUT 2 now: Redis' clock, ms
-- OUT 3 offset
-- OUT 4 version: 0 = nobody has written an offset
-- OUT 5 votes: how many there were
-- OUT 6 log: '' = nobody knew
-- OUT 7 log_at: when that was written, in the time of the service
-- STATUS OK
-- INV an offset is replaced only by who has seen it
-- COST O(1)
-- VERSION 1
-- INCLUDE clock
local now, service, bound = clock(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local c = redis.call('HMGET', KEYS[1], 'offset', 'version', 'votes', 'log', 'log_at')
local offset, version, votes = tonumber(c[1] or '0'), c[2] or '0', tonumber(c[3] or '0')
if ARGV[4] == version then
  offset, version = tonumber(ARGV[5]), ARGV[6]
  redis.call('HSET', KEYS[1], 'offset', offset, 'version', version)
end
if service > 0 and math.abs(now + offset - service) <= bound then votes = redis.call('HINCRBY', KEYS[1], 'votes', 1) end
if ARGV[7] ~= '' then redis.call('HSET', KEYS[1], 'log', ARGV[7], 'log_at', now + offset) end
return {'OK', now, offset, tonumber(version), votes, c[4] or '', tonumber(c[5] or '0')}
