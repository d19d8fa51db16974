-- parked: shows parked groups, by when the retention of their first messages ends. Changes nothing.
-- KEYS 1 meta hash: generation, fifo, c:<tag>, n:<tag>, g:<tag>
-- KEYS 2 visible zset: offset by next visible ms
-- KEYS 3 delivery hash: offset -> delivery
-- KEYS 4 order zset: group and offset
-- KEYS 5 groups zset: groups by next ms
-- ARGV 1 generation
-- ARGV 2 tag
-- ARGV 3 max
-- ARGV 4 after_ms: behind the message whose retention ends then, -1 = from the first on
-- ARGV 5 after_offset: of that message
-- OUT 1 status
-- OUT 2 messages: {offset, count, first ms, ms at which its retention ends, how many are behind it in its group, per
--   group}
-- STATUS OK LOST
-- INV reads only, but for a unit that has lost something: that stops serving
-- COST O(max log open)
-- VERSION 1
-- INCLUDE unit groups
local visible, delivery, order, groups = KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local unit, refused = guard(KEYS[1], ARGV[1], ARGV[2], visible, delivery, order, groups)
if refused then return refused end
local max, after_ms, start = tonumber(ARGV[3]), tonumber(ARGV[4]), nil
local score = redis.call('ZSCORE', visible, ARGV[5])
if after_ms < 0 then
  start = redis.call('ZCOUNT', visible, '-inf', '(' .. PARKED)
elseif score and tonumber(score) == PARKED + after_ms then
  start = redis.call('ZRANK', visible, ARGV[5]) + 1
else
  -- It is parked no longer: from the first on whose retention ends in that ms, or later.
  start = redis.call('ZCOUNT', visible, '-inf', string.format('(%.0f', PARKED + after_ms))
end
local out = {}
for _, member in ipairs(unit.fifo and redis.call('ZRANGE', visible, start, start + max - 1) or {}) do
  local off = tonumber(member)
  local d = delivery_read(delivery, off)
  local low, high = group_range(d.group)
  for _, v in ipairs({off, d.count, d.first, d.time - PARKED, redis.call('ZLEXCOUNT', order, low, high) - 1}) do
    out[#out + 1] = v
  end
end
return {'OK', out}
