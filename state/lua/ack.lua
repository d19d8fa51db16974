-- ack: settles leased messages for a tag. A handle of a delivery that is over changes nothing.
-- KEYS 1 meta hash: generation, seq, drained, bytes, fifo, c:<tag>, n:<tag>, g:<tag>, acked:<tag>
-- KEYS 2 visible zset: offset by next visible ms
-- KEYS 3 delivery hash: offset -> delivery
-- KEYS 4 body hash: offset -> header and record
-- KEYS 5 refs hash: offset -> holders
-- KEYS 6 outbox list: journal entries
-- KEYS 7 order zset: group and offset
-- KEYS 8 groups zset: groups, by next ms (FIFO) or by how many are in flight (fair)
-- KEYS 9 ahead set: offsets at or above the cursor already taken
-- ARGV 1 generation
-- ARGV 2 now: ms, the time of the service; 0 = Redis' clock (tests)
-- ARGV 3 tag
-- ARGV 4 late: 1 = a lapsed lease counts until the message is delivered again
-- ARGV 5 channel: wake-ups go there (a group that is free again)
-- ARGV 6 partition: the payload of a wake-up
-- ARGV 7 width: how many values each handle has
-- ARGV + per handle: offset, nonce; with width 3 also the deadline of its delivery, 0 = any
-- OUT 1 status
-- OUT 2 words: {status word per handle}; none = each is OK
-- OUT 3 seq: of the journal entry; of the last one if a message was settled before; 0 = none
-- STATUS OK REASONS FULL LOST
-- INV a handle settles its message at most once
-- COST O(handles log open)
-- VERSION 8
-- PLAIN plain/ack.lua
-- INCLUDE clock unit groups fair settle handle
local meta, visible, delivery, body, refs, outbox = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6]
local unit, refused = guard(meta, ARGV[1], ARGV[3], visible, delivery, KEYS[7], KEYS[8])
refused = refused or blocked(unit, meta, outbox)
if refused then return refused end
local now, tag, late = clock(ARGV[2]), tonumber(ARGV[3]), ARGV[4] == '1'
local words, acked, done, touched, asked, all, repeated = {}, {}, {}, {}, {}, true, false
local width, window = tonumber(ARGV[7]), {visible = visible, ahead = KEYS[9], cursor = unit.cursor}
for a = 8, #ARGV, width do asked[#asked + 1] = ARGV[a] end
for i, packed in ipairs(redis.call('HMGET', delivery, unpack(asked))) do
  local off, d = tonumber(asked[i]), delivery_of(packed)
  local at = 8 + (i - 1) * width
  local word = done[off] and 'SETTLED' or judge(window, off, d, ARGV[at + 1], width > 2 and ARGV[at + 2], now, late)
  if word == 'OK' then
    if unit.fifo then settle_ordered(KEYS[7], off, d.group, touched) else leave(KEYS[7], KEYS[8], off, d) end
    acked[#acked + 1], done[off] = off, true
  end
  words[#words + 1], all, repeated = word, all and word == 'OK', repeated or word == 'SETTLED'
end
local seq = 0
if #acked > 0 then
  settle(meta, visible, delivery, body, refs, acked)
  seq = journal(meta, outbox, now, 'acked', tag, acked)
  total(meta, 'acked', ARGV[3], #acked)
  seal(meta, ARGV[3], visible, delivery)
  if unit.fifo and regroup_all(KEYS[7], KEYS[8], delivery, touched, now) then
    redis.call('PUBLISH', ARGV[5], ARGV[6])
  end
  if unit.fifo or unit.fair then seal_groups(meta, ARGV[3], KEYS[7], KEYS[8]) end
elseif repeated then
  -- The journal may lack the entry of the first time: whoever waited for that then waits for it now.
  -- What was restored when the unit was opened is there.
  local m = redis.call('HMGET', meta, 'seq', 'base')
  local last = tonumber(m[1] or 0)
  if last > tonumber(m[2] or 0) then seq = last end
end
return {'OK', all and {} or words, seq}
