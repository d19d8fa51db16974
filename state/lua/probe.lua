-- probe: tells when a receive would find something. Changes nothing.
-- KEYS 1 meta hash: generation, shown, bytes, fifo, seen, c:<tag>, n:<tag>, g:<tag>
-- KEYS 2 visible zset: offset by next visible ms
-- KEYS 3 delivery hash: offset -> delivery
-- KEYS 4 body hash: offset -> header and record
-- KEYS 5 groups zset: groups, by next ms (FIFO) or by how many are in flight (fair)
-- KEYS 6 delayed zset: offset by due ms
-- ARGV 1 generation
-- ARGV 2 now: ms, the time of the service; 0 = Redis' clock (tests)
-- ARGV 3 tag
-- ARGV 4 times: how many to show, 0 = none; not FIFO
-- OUT 1 status
-- OUT 2 now: ms
-- OUT 3 head: when the next is visible (ms), or since when; -1 = nothing is open
-- OUT 4 cursor
-- OUT 5 open: messages of the tag
-- OUT 6 leased_count: how many of them are leased; of few open ones it is not counted: 0
-- OUT 7 bodies: of all tags
-- OUT 8 bytes: of those
-- OUT 9 seen: -1 = not known
-- OUT 10 hungry: 1 or 0, as of receive
-- OUT 11 times: {since when (ms) the first of what is visible is, by age ...}; fair: of quiet groups
-- STATUS OK LOST
-- INV reads only, but for a unit that has lost something: that stops serving
-- COST O(times + log open)
-- VERSION 5
-- INCLUDE clock unit head
local meta, visible, delivery, body, groups = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local unit, refused = guard(meta, ARGV[1], ARGV[3], visible, delivery)
if refused then return refused end
local now = unit_clock(unit, ARGV[2])
local times = {}
if ARGV[4] ~= '0' then
  local rows = redis.call('ZRANGEBYSCORE', visible, 0, now, 'WITHSCORES', 'LIMIT', 0, ARGV[4])
  for i = 2, #rows, 2 do times[#times + 1] = tonumber(rows[i]) end
end
local open = redis.call('ZCARD', visible)
local head, hungry = head_of(unit, visible, groups, now)
local m = redis.call('HMGET', meta, 'bytes', 'seen')
local leased, bodies = leased_of(visible, KEYS[6], open, now), redis.call('HLEN', body)
return {'OK', now, head, unit.cursor, open, leased, bodies, tonumber(m[1] or '0'), tonumber(m[2] or '-1'),
  hungry and 1 or 0, times}
