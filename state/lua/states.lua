-- states: where messages stand under one tag. Changes nothing.
-- KEYS 1 meta hash: generation, c:<tag>
-- KEYS 2 visible zset: offset by next visible ms
-- KEYS 3 delivery hash: offset -> delivery
-- KEYS 4 ahead set: offsets at or above the cursor already taken
-- ARGV 1 generation
-- ARGV 2 now: ms, 0 = Redis' clock
-- ARGV 3 tag
-- ARGV + offsets
-- OUT {status, {state word, count, first ms, next visible ms per offset}}
-- STATUS OK LOST
-- INV reads only
-- COST O(offsets)
-- VERSION 1
-- INCLUDE clock delivery
local meta, visible, delivery, ahead = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
if redis.call('HGET', meta, 'generation') ~= ARGV[1] then return {'LOST'} end
local cursor = tonumber(redis.call('HGET', meta, 'c:' .. ARGV[3]) or '-1')
if cursor < 0 then return {'LOST'} end
local now = clock(ARGV[2])
local out = {}
for a = 4, #ARGV do
  local off = tonumber(ARGV[a])
  local score = tonumber(redis.call('ZSCORE', visible, off) or '-1')
  local d = delivery_read(delivery, off) or {nonce = 0, count = 0, first = 0}
  local state = 'ready'
  if score < 0 then
    state = (off < cursor or redis.call('SISMEMBER', ahead, off) == 1) and 'settled' or 'stored'
  elseif score > now then
    state = d.nonce ~= 0 and 'leased' or 'delayed'
  end
  for _, v in ipairs({state, d.count, d.first, math.max(score, 0)}) do out[#out + 1] = v end
end
return {'OK', out}
