-- settle: the last step of a move (the target has the message), or the end of a message that Kafka no longer has; only
--   by its holder.
-- KEYS 1 meta hash: generation, seq, bytes, fifo, c:<tag>, n:<tag>, g:<tag>, dead:<tag>
-- KEYS 2 visible zset: offset by next visible ms
-- KEYS 3 delivery hash: offset -> delivery
-- KEYS 4 body hash: offset -> header and record
-- KEYS 5 refs hash: offset -> holders
-- KEYS 6 outbox list: journal entries
-- KEYS 7 order zset: group and offset
-- KEYS 8 groups zset: groups, by next ms (FIFO) or by how many are in flight (fair)
-- ARGV 1 generation
-- ARGV 2 now: ms, the time of the service; 0 = Redis' clock (tests)
-- ARGV 3 tag
-- ARGV 4 kind: dead, moved or expired
-- ARGV 5 channel: wake-ups go there (a group that is free again)
-- ARGV 6 partition: the payload of a wake-up
-- ARGV 7 reason: of the journal entry, '' = none
-- ARGV + per message: offset, nonce
-- OUT 1 status
-- OUT 2 words: {status word per message}
-- STATUS OK STALE LOST
-- INV a message is settled at most once
-- COST O(messages log open)
-- VERSION 5
-- INCLUDE clock unit groups fair settle
local meta, visible, delivery, body, refs, outbox = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6]
local unit, refused = guard(meta, ARGV[1], ARGV[3], visible, delivery, KEYS[7], KEYS[8])
if refused then return refused end
local now, tag = clock(ARGV[2]), tonumber(ARGV[3])
local words, settled, done, touched = {}, {}, {}, {}
for a = 8, #ARGV, 2 do
  local off = tonumber(ARGV[a])
  local d = delivery_read(delivery, off)
  if d and not done[off] and d.nonce == tonumber(ARGV[a + 1]) and (d.flag ~= 0 or ARGV[4] == 'expired') then
    if unit.fifo then settle_ordered(KEYS[7], off, d.group, touched) else leave(KEYS[7], KEYS[8], off, d) end
    settled[#settled + 1], done[off] = off, true
    words[#words + 1] = 'OK'
  else
    words[#words + 1] = 'STALE'
  end
end
if #settled > 0 then
  settle(meta, visible, delivery, body, refs, settled)
  journal(meta, outbox, now, ARGV[4], tag, settled, nil, ARGV[7])
  if ARGV[4] == 'dead' then total(meta, 'dead', ARGV[3], #settled) end
  seal(meta, ARGV[3], visible, delivery)
  if unit.fifo and regroup_all(KEYS[7], KEYS[8], delivery, touched, now) then
    redis.call('PUBLISH', ARGV[5], ARGV[6])
  end
  if unit.fifo or unit.fair then seal_groups(meta, ARGV[3], KEYS[7], KEYS[8]) end
end
return {'OK', words}
