-- bring: takes deferred messages that are due soon into the window of a tag, and moves its mark over them.
-- KEYS 1 meta hash: generation, epoch, seq, drained, bytes, far, c:<tag>, n:<tag>, g:<tag>, a:<tag>, d:<tag>, w:<tag>,
--   p:<tag>, t:<tag>
-- KEYS 2 body hash: offset -> header and record
-- KEYS 3 refs hash: offset -> holders
-- KEYS 4 outbox list: journal entries
-- KEYS 5 far hash: how many are deferred, by tag and slot
-- KEYS 6 except hash: bitmaps of offsets that are deferred no longer
-- KEYS 7 pointers zset: offset by due ms, of what is deferred and not in the wheel yet
-- KEYS 8 visible zset: offset by next visible ms
-- KEYS 9 ahead set: offsets at or above the cursor already taken
-- KEYS 10 delayed zset: offset by due ms
-- KEYS 11 delivery hash: offset -> delivery
-- KEYS 12 order zset: group and offset of what is set back
-- KEYS 13 groups zset: groups by how many are in flight
-- ARGV 1 generation
-- ARGV 2 epoch: of the owner
-- ARGV 3 now: ms, the time of the service; 0 = Redis' clock (tests)
-- ARGV 4 channel: wake-ups go there; '' = nobody else listens
-- ARGV 5 payload: of a wake-up, the partition and who brings; the script adds `head`
-- ARGV 6 window_messages: bodies
-- ARGV 7 window_bytes: bytes of bodies
-- ARGV 8 max_open: messages a tag may have open beside those that are leased
-- ARGV 9 tag
-- ARGV 10 mark: where the caller found the mark, ms:offset
-- ARGV 11 to_ms: up to there the messages given are all there are, by what the wheel and `pointers` had
-- ARGV 12 to_offset
-- ARGV 13 early_ms: how far the time of the service is ahead of the log's (< 0: behind): a delay is over so much later
-- ARGV + per message, by due ms and offset: offset, due ms, header and record or '' (the tag does not want it), group
--   (8 bytes) or ''
-- OUT 1 status: STALE = the mark is another
-- OUT 2 brought: how many
-- OUT 3 mark: where it is now, ms:offset
-- OUT 4 full: 1 = the window takes no more, else 0
-- OUT 5 head: when the first of what it brought is visible (ms), 0 = nothing was
-- STATUS OK STALE FENCED FULL LOST
-- INV a message is brought at most once, and only if it was deferred; what the mark passes is in the window
-- COST O(messages log open)
-- VERSION 3
-- INCLUDE clock unit groups fair head far
local meta, body, refs, outbox, far, except, pointers = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6], KEYS[7]
local visible, ahead, delayed, delivery, order, groups = KEYS[8], KEYS[9], KEYS[10], KEYS[11], KEYS[12], KEYS[13]
if redis.call('HGET', meta, 'epoch') ~= ARGV[2] then return {'FENCED'} end
local now, tag, max_open, early_ms = clock(ARGV[3]), ARGV[9], tonumber(ARGV[8]), tonumber(ARGV[13])
local unit, refused = guard(meta, ARGV[1], tag, visible, delivery, order, groups)
refused = refused or blocked(unit, meta, outbox)
if refused then return refused end
if not ahead_whole(unit, ahead) or not far_whole(meta, far, except, pointers) then return broken(meta) end
local mark = mark_of(meta, tag)
if mark_text(mark.ms, mark.off) ~= ARGV[10] then return {'STALE'} end
local to, listed = {ms = tonumber(ARGV[11]), off = tonumber(ARGV[12])}, {}
for a = 14, #ARGV, 4 do listed[ARGV[a]] = true end
-- What was deferred since the caller looked is for the next time: the mark stops before it.
local unlisted = redis.call('ZRANGEBYSCORE', pointers, mark.ms, to.ms, 'WITHSCORES')
for i = 1, #unlisted, 2 do
  local off, due = tonumber(unlisted[i]), tonumber(unlisted[i + 1])
  if not listed[unlisted[i]] and after(mark, due, off) and not after(to, due, off) then
    to = {ms = due, off = off - 1}
  end
end
local open = redis.call('ZCARD', visible)
open = open - leased_of(visible, delayed, open, now)
local bodies, bytes = redis.call('HLEN', body), tonumber(redis.call('HGET', meta, 'bytes') or '0')
local offsets, dues, full, first_bytes, head = {}, {}, 0, bytes, 0
-- HEADER: bytes of the header, as packed.HEADER_BYTES.
local HEADER = 24
local function hold(off, packed)
  if #packed == HEADER or bodies >= tonumber(ARGV[6]) or bytes + #packed > tonumber(ARGV[7]) then return end
  if redis.call('HSETNX', body, off, packed) == 1 then
    bodies, bytes = bodies + 1, bytes + #packed
  else
    redis.call('HSET', refs, off, tonumber(redis.call('HGET', refs, off) or '1') + 1)
  end
end
for a = 14, #ARGV, 4 do
  local off, due, packed, group = tonumber(ARGV[a]), tonumber(ARGV[a + 1]), ARGV[a + 2], ARGV[a + 3]
  if after(to, due, off) then break end
  local taken = off < unit.cursor or redis.call('SISMEMBER', ahead, off) == 1
  if packed ~= '' and taken and is_deferred(mark, except, tag, due, off) and not redis.call('ZSCORE', visible, off) then
    if open >= max_open then
      full, to = 1, {ms = due, off = off - 1}
      break
    end
    local at = due_here(due, early_ms, now)
    redis.call('ZADD', visible, at, off)
    if at > now then redis.call('ZADD', delayed, at, off) end
    if group ~= '' then
      delivery_write(delivery, off, {nonce = 0, count = 0, first = 0, flag = 0, time = at, group = group})
      join(visible, order, groups, {due = at, off = off, group = group}, now)
    end
    hold(off, packed)
    open, offsets[#offsets + 1], dues[#dues + 1], head = open + 1, off, due, head > 0 and head or at
  end
end
if not after(mark, to.ms, to.off) then return {'OK', 0, ARGV[10], full, 0} end
local text = mark_text(to.ms, to.off)
redis.call('HSET', meta, 'w:' .. tag, text)
count_deferred(meta, far, tag, dues, -1)
journal(meta, outbox, now, 'brought', tonumber(tag), offsets, dues, text)
-- A slot that is over needs no exceptions, and nothing is deferred in it.
if slot_of(to.ms) > slot_of(mark.ms) then
  for _, field in ipairs(redis.call('HKEYS', far)) do
    local of, slot = string.match(field, '^s:(%d+):(%d+)$')
    if of == tag and tonumber(slot) < slot_of(to.ms) then
      redis.call('HINCRBY', meta, 't:' .. tag, -tonumber(redis.call('HGET', far, field)))
      redis.call('HDEL', far, field)
    end
  end
  for _, field in ipairs(redis.call('HKEYS', except)) do
    local of, slot = string.match(field, '^(%d+):(%d+):')
    if of == tag and tonumber(slot) < slot_of(to.ms) then redis.call('HDEL', except, field) end
  end
end
if bytes ~= first_bytes then redis.call('HINCRBY', meta, 'bytes', bytes - first_bytes) end
seal(meta, tag, visible, delivery)
seal_delayed(meta, tag, delayed)
seal_groups(meta, tag, order, groups)
seal_far(meta, far, except, pointers)
if #offsets > 0 and ARGV[4] ~= '' then redis.call('PUBLISH', ARGV[4], ARGV[5] .. ' ' .. head) end
return {'OK', #offsets, text, full, head}
