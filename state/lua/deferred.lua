-- deferred: shows which deferred messages the wheel does not have, and what each tag has deferred up to a time. Changes
--   nothing.
-- KEYS 1 meta hash: generation, far, unfiled, w:<tag>, p:<tag>, t:<tag>
-- KEYS 2 far hash: how many are deferred, by tag and slot
-- KEYS 3 except hash: bitmaps of offsets that are deferred no longer
-- KEYS 4 pointers zset: offset by due ms, of what is deferred and not in the wheel yet
-- ARGV 1 generation
-- ARGV 2 now: ms, the time of the service; 0 = Redis' clock (tests)
-- ARGV 3 ahead_ms: slots that begin up to so much later are shown
-- ARGV + tag ids
-- OUT 1 status
-- OUT 2 now: ms
-- OUT 3 pointers: {offset, due ms ...}, by due ms
-- OUT 4 tags: {mark (ms:offset), bound, how many are deferred, {slot, how many ...}} per tag
-- STATUS OK LOST
-- INV reads only, but for a unit that has lost something: that stops serving
-- COST O(pointers + slots)
-- VERSION 1
-- INCLUDE clock unit far
local meta, far, except, pointers = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
if redis.call('HGET', meta, 'generation') ~= ARGV[1] then return {'LOST'} end
if not far_whole(meta, far, except, pointers) then return broken(meta) end
local now, out = clock(ARGV[2]), {}
local last = slot_of(now + tonumber(ARGV[3]))
local counts = redis.call('HGETALL', far)
for i = 4, #ARGV do
  local mark, slots = mark_of(meta, ARGV[i]), {}
  for n = 1, #counts, 2 do
    local tag, slot = string.match(counts[n], '^s:(%d+):(%d+)$')
    if tag == ARGV[i] and tonumber(slot) <= last then
      slots[#slots + 1], slots[#slots + 2] = tonumber(slot), tonumber(counts[n + 1])
    end
  end
  out[#out + 1] = {mark_text(mark.ms, mark.off), mark.bound, tonumber(redis.call('HGET', meta, 't:' .. ARGV[i]) or '0'),
    slots}
end
local shown = {}
for _, word in ipairs(redis.call('ZRANGE', pointers, 0, -1, 'WITHSCORES')) do shown[#shown + 1] = tonumber(word) end
return {'OK', now, shown, out}
