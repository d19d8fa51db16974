-- delete: settles one message under every tag that has not settled it, unless it is leased under one of them.
-- KEYS 1 meta hash: generation, seq, bytes, fifo, far, c:<tag>, n:<tag>, g:<tag>, a:<tag>, d:<tag>, w:<tag>, p:<tag>,
--   t:<tag>
-- KEYS 2 body hash: offset -> header and record
-- KEYS 3 refs hash: offset -> holders
-- KEYS 4 outbox list: journal entries
-- KEYS 5 far hash: how many are deferred, by tag and slot
-- KEYS 6 except hash: bitmaps of offsets that are deferred no longer
-- KEYS 7 pointers zset: offset by due ms, of what is deferred and not in the wheel yet
-- KEYS + per tag: visible zset, ahead set, delayed zset, delivery hash, order zset, groups zset
-- ARGV 1 generation
-- ARGV 2 now: ms, the time of the service; 0 = Redis' clock (tests)
-- ARGV 3 channel: wake-ups go there (a group that is free again)
-- ARGV 4 partition: the payload of a wake-up
-- ARGV 5 offset
-- ARGV 6 wanted: a digit per tag, 1 = the tag wants the message: only what was received under none of them is settled;
--   "" = whatever it is
-- ARGV + per tag: id, due ms if the message is far and the tag wants it, else 0
-- OUT 1 status
-- STATUS OK BUSY RECEIVED SETTLED LOST
-- INV all tags or none
-- COST O(tags)
-- VERSION 6
-- INCLUDE clock unit groups fair settle far remove
local meta, body, refs, outbox, far, except, pointers = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6], KEYS[7]
local now, off = clock(ARGV[2]), tonumber(ARGV[5])
if not far_whole(meta, far, except, pointers) then return broken(meta) end
local wanted, found, received = ARGV[6], {}, false
for i = 7, #ARGV, 2 do
  local place = (i - 7) / 2
  local k = 7 + place * 6
  local keys = {KEYS[k + 1], KEYS[k + 2], KEYS[k + 3], KEYS[k + 4], KEYS[k + 5], KEYS[k + 6]}
  local it, refused = standing(meta, except, ARGV[1], ARGV[i], keys, off, tonumber(ARGV[i + 1]))
  if refused then return refused end
  local d = it and it.d
  if d and d.nonce ~= 0 and d.time > now and d.flag ~= 4 then return {'BUSY'} end
  received = received or d and d.count > 0 or not it and string.sub(wanted, place + 1, place + 1) == '1'
  found[#found + 1] = it
end
if wanted ~= '' and received and #found > 0 then return {'RECEIVED'} end
for _, it in ipairs(found) do
  if remove(meta, body, refs, far, except, now, it, off) then redis.call('PUBLISH', ARGV[3], ARGV[4]) end
  journal(meta, outbox, now, 'deleted', tonumber(it.tag), {off}, told(it))
end
seal_far(meta, far, except, pointers)
return {#found > 0 and 'OK' or 'SETTLED'}
