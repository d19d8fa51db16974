-- claim: holds messages for a redrive task: not lent, not counted, invisible until settled, given back or lapsed. Takes offsets beyond the window too.
-- KEYS 1 meta hash: generation, seq, c:<tag>
-- KEYS 2 visible zset: offset by next visible ms
-- KEYS 3 delivery hash: offset -> delivery
-- KEYS 4 ahead set: offsets at or above the cursor already taken
-- KEYS 5 outbox list: journal entries
-- ARGV 1 generation
-- ARGV 2 now: ms, 0 = Redis' clock
-- ARGV 3 tag
-- ARGV 4 claim_ms
-- ARGV + offsets
-- OUT {status, nonce, {a status word, and until when a lost claim before held it (ms, 0 = none), per offset}}
-- STATUS OK BUSY HELD SETTLED FULL LOST
-- INV a leased or dying message is never claimed
-- COST O(offsets log open)
-- VERSION 1
-- INCLUDE clock journal delivery
local meta, visible, delivery, ahead, outbox = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
if redis.call('HGET', meta, 'generation') ~= ARGV[1] then return {'LOST'} end
if redis.call('LLEN', outbox) >= 20000 then return {'FULL'} end
local cursor = tonumber(redis.call('HGET', meta, 'c:' .. ARGV[3]) or '-1')
if cursor < 0 then return {'LOST'} end
local now, tag, claim_ms = clock(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local words, claimed, times, held = {}, {}, {}, {}
for a = 5, #ARGV do
  local off = tonumber(ARGV[a])
  local open = redis.call('ZSCORE', visible, off)
  local d = delivery_read(delivery, off) or {nonce = 0, count = 0, first = 0, flag = 0, time = 0}
  local word, again = 'OK', 0
  if open then
    if d.flag == 3 then again = d.time end
    if d.nonce ~= 0 and d.time > now then word = d.flag == 3 and 'HELD' or 'BUSY' end
  elseif off < cursor or redis.call('SADD', ahead, off) == 0 then
    word = 'SETTLED'
  end
  if word == 'OK' then
    d.flag, d.time = 3, now + claim_ms
    claimed[#claimed + 1], times[#times + 1], held[#held + 1] = off, d.time, d
  end
  words[#words + 1], words[#words + 2] = word, again
end
local nonce = 0
if #claimed > 0 then
  nonce = journal(meta, outbox, now, 'claimed', tag, claimed, times)
  for i, off in ipairs(claimed) do
    held[i].nonce = nonce
    delivery_write(delivery, off, held[i])
    redis.call('ZADD', visible, held[i].time, off)
  end
end
return {'OK', nonce, words}
