-- ack: settles leased messages for a tag. A handle of a delivery that is over changes nothing.
-- KEYS 1 meta hash: generation, seq, bytes
-- KEYS 2 visible zset: offset by next visible ms
-- KEYS 3 delivery hash: offset -> delivery
-- KEYS 4 body hash: offset -> header and record
-- KEYS 5 refs hash: offset -> holders
-- KEYS 6 outbox list: journal entries
-- ARGV 1 generation
-- ARGV 2 now: ms, 0 = Redis' clock
-- ARGV 3 tag
-- ARGV 4 late: 1 = a lapsed lease counts until the message is delivered again
-- ARGV + per handle: offset, nonce
-- OUT {status, {a status word per handle}, seq of the journal entry or 0}
-- STATUS OK STALE LAPSED FULL LOST
-- INV a handle settles its message at most once
-- COST O(handles log open)
-- VERSION 1
-- INCLUDE clock journal delivery settle
local meta, visible, delivery, body, refs, outbox = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6]
if redis.call('HGET', meta, 'generation') ~= ARGV[1] then return {'LOST'} end
if redis.call('LLEN', outbox) >= 20000 then return {'FULL'} end
local now, tag, late = clock(ARGV[2]), tonumber(ARGV[3]), ARGV[4] == '1'
local shared = redis.call('EXISTS', refs) == 1
local words, acked = {}, {}
for a = 5, #ARGV, 2 do
  local off = tonumber(ARGV[a])
  local d = delivery_read(delivery, off)
  local word = 'OK'
  if not d or d.nonce ~= tonumber(ARGV[a + 1]) or d.flag ~= 0 then
    word = 'STALE'
  elseif d.time <= now and not late then
    word = 'LAPSED'
  else
    settle(meta, visible, delivery, body, refs, off, shared)
    acked[#acked + 1] = off
  end
  words[#words + 1] = word
end
local seq = 0
if #acked > 0 then seq = journal(meta, outbox, now, 'acked', tag, acked) end
return {'OK', words, seq}
