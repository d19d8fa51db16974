-- passed: open messages below an offset, the lowest first: a floor has passed them while they were deferred. Changes
--   nothing.
-- KEYS 1 meta hash: generation, w:<tag>
-- KEYS 2 visible zset: offset by next visible ms
-- KEYS 3 except hash: bitmaps of offsets that are deferred no longer
-- ARGV 1 generation
-- ARGV 2 now: ms, the time of the service; 0 = Redis' clock (tests)
-- ARGV 3 tag
-- ARGV 4 below: offset
-- ARGV 5 due: 1 = only what is visible now, 0 = all
-- ARGV 6 max: offsets at most
-- OUT 1 status
-- OUT 2 offsets
-- STATUS OK LOST
-- INV reads only
-- COST O(open)
-- VERSION 1
-- INCLUDE clock
local meta, visible = KEYS[1], KEYS[2]
local m = redis.call('HMGET', meta, 'generation', 'w:' .. ARGV[3])
if m[1] ~= ARGV[1] then return {'LOST'} end
-- Nothing was brought yet, nor rescheduled since the mark has moved.
if (m[2] or '0:-1') == '0:-1' and redis.call('EXISTS', KEYS[3]) == 0 then return {'OK', {}} end
local below, found = tonumber(ARGV[4]), {}
for _, member in ipairs(redis.call('ZRANGEBYSCORE', visible, '-inf', ARGV[5] == '1' and clock(ARGV[2]) or '+inf')) do
  local off = tonumber(member)
  if off < below then found[#found + 1] = off end
end
table.sort(found)
for i = #found, tonumber(ARGV[6]) + 1, -1 do found[i] = nil end
return {'OK', found}
