-- probe: tells when a receive would find something. Changes nothing.
-- KEYS 1 meta hash: generation, bytes, c:<tag>
-- KEYS 2 visible zset: offset by next visible ms
-- KEYS 3 body hash: offset -> header and record
-- ARGV 1 generation
-- ARGV 2 now: ms, 0 = Redis' clock
-- ARGV 3 tag
-- OUT {status, ms to the next visible time or -1, cursor, open, bodies of all tags, their bytes}
-- STATUS OK LOST
-- INV reads only
-- COST O(1)
-- VERSION 1
-- INCLUDE clock
local meta, visible, body = KEYS[1], KEYS[2], KEYS[3]
if redis.call('HGET', meta, 'generation') ~= ARGV[1] then return {'LOST'} end
local cursor = redis.call('HGET', meta, 'c:' .. ARGV[3])
if not cursor then return {'LOST'} end
local now = clock(ARGV[2])
local head = redis.call('ZRANGE', visible, 0, 0, 'WITHSCORES')
local wait = -1
if head[2] then wait = math.max(0, tonumber(head[2]) - now) end
local bytes = tonumber(redis.call('HGET', meta, 'bytes') or '0')
return {'OK', wait, tonumber(cursor), redis.call('ZCARD', visible), redis.call('HLEN', body), bytes}
