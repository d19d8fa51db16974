-- delete: settles one message under every tag that has not settled it, unless it is leased under one of them.
-- KEYS 1 meta hash: generation, seq, bytes, c:<tag>
-- KEYS 2 body hash: offset -> header and record
-- KEYS 3 refs hash: offset -> holders
-- KEYS 4 outbox list: journal entries
-- KEYS + per tag: visible zset, ahead set, delayed zset, delivery hash
-- ARGV 1 generation
-- ARGV 2 now: ms, 0 = Redis' clock
-- ARGV 3 offset
-- ARGV + tag ids
-- OUT {status}
-- STATUS OK BUSY SETTLED LOST
-- INV all tags or none
-- COST O(tags)
-- VERSION 1
-- INCLUDE clock journal delivery settle
local meta, body, refs, outbox = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
if redis.call('HGET', meta, 'generation') ~= ARGV[1] then return {'LOST'} end
local now, off = clock(ARGV[2]), tonumber(ARGV[3])
local shared = redis.call('EXISTS', refs) == 1
local found = false
local open = {}
for i = 4, #ARGV do
  local k = 4 + (i - 4) * 4
  local cursor = tonumber(redis.call('HGET', meta, 'c:' .. ARGV[i]) or '-1')
  if cursor < 0 then return {'LOST'} end
  local score = redis.call('ZSCORE', KEYS[k + 1], off)
  if score then
    local d = delivery_read(KEYS[k + 4], off)
    if d and d.nonce ~= 0 and d.time > now then return {'BUSY'} end
    open[i] = 'window'
  elseif off >= cursor and redis.call('SISMEMBER', KEYS[k + 2], off) == 0 then
    open[i] = 'beyond'
  end
end
for i = 4, #ARGV do
  local k = 4 + (i - 4) * 4
  if open[i] == 'window' then
    settle(meta, KEYS[k + 1], KEYS[k + 4], body, refs, off, shared)
    redis.call('ZREM', KEYS[k + 3], off)
  elseif open[i] == 'beyond' then
    redis.call('SADD', KEYS[k + 2], off)
  end
  if open[i] then
    found = true
    journal(meta, outbox, now, 'deleted', tonumber(ARGV[i]), {off})
  end
end
return {found and 'OK' or 'SETTLED'}
