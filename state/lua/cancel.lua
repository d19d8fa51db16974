-- cancel: settles one delayed message under every tag that has it, if it is due under none of them and none was ever
--   given it.
-- KEYS 1 meta hash: generation, seq, drained, bytes, fifo, far, c:<tag>, n:<tag>, g:<tag>, a:<tag>, d:<tag>, w:<tag>,
--   p:<tag>, t:<tag>
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
-- ARGV 6 due_ms: of the message, as it was sent
-- ARGV + per tag: id, due ms if the message is far and the tag wants it, else 0
-- OUT 1 status: DUE = it may have been given to somebody, or is about to be
-- OUT 2 seq: of the last journal entry, 0 = none
-- STATUS OK DUE SETTLED FULL LOST
-- INV all tags or none; a message is cancelled or delivered, never both
-- COST O(tags)
-- VERSION 1
-- INCLUDE clock unit groups fair settle far remove
local meta, body, refs, outbox, far, except, pointers = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6], KEYS[7]
local now, off = clock(ARGV[2]), tonumber(ARGV[5])
if not far_whole(meta, far, except, pointers) then return broken(meta) end
local found = {}
for i = 7, #ARGV, 2 do
  local k = 7 + (i - 7) / 2 * 6
  local keys = {KEYS[k + 1], KEYS[k + 2], KEYS[k + 3], KEYS[k + 4], KEYS[k + 5], KEYS[k + 6]}
  local it, refused = standing(meta, except, ARGV[1], ARGV[i], keys, off, tonumber(ARGV[i + 1]))
  refused = refused or it and blocked(it.unit, meta, outbox)
  if refused then return refused end
  if it then
    if given_or_due(it, now, tonumber(ARGV[6])) then return {'DUE', 0} end
    found[#found + 1] = it
  end
end
local seq = 0
for _, it in ipairs(found) do
  if remove(meta, body, refs, far, except, now, it, off) then redis.call('PUBLISH', ARGV[3], ARGV[4]) end
  seq = journal(meta, outbox, now, 'cancelled', tonumber(it.tag), {off}, told(it))
end
seal_far(meta, far, except, pointers)
return {#found > 0 and 'OK' or 'SETTLED', seq}
