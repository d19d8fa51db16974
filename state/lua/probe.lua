-- probe: tells when a receive would find something. Changes nothing.
-- KEYS 1 meta hash: generation, bytes, fifo, seen, c:<tag>, n:<tag>, g:<tag>
-- KEYS 2 visible zset: offset by next visible ms
-- KEYS 3 delivery hash: offset -> delivery
-- KEYS 4 body hash: offset -> header and record
-- KEYS 5 groups zset: groups, by next ms (FIFO) or by how many are in flight (fair)
-- ARGV 1 generation
-- ARGV 2 now: ms, 0 = Redis' clock
-- ARGV 3 tag
-- OUT {status, ms to the next visible time or -1, cursor, open, bodies of all tags, their bytes, seen (-1 = not known), hungry: 1 or 0}
-- STATUS OK LOST
-- INV reads only, but for a unit that has lost something: that stops serving
-- COST O(1)
-- VERSION 3
-- INCLUDE clock guard hungry
local meta, visible, delivery, body, groups = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local unit, refused = guard(meta, ARGV[1], ARGV[3], visible, delivery)
if refused then return refused end
local now = clock(ARGV[2])
local head = redis.call('ZRANGE', unit.fifo and groups or visible, 0, 0, 'WITHSCORES')
local wait = -1
if head[2] then wait = math.max(0, tonumber(head[2]) - now) end
local m = redis.call('HMGET', meta, 'bytes', 'seen')
return {'OK', wait, unit.cursor, redis.call('ZCARD', visible), redis.call('HLEN', body), tonumber(m[1] or '0'), tonumber(m[2] or '-1'), hungry(unit, visible, groups, now) and 1 or 0}
