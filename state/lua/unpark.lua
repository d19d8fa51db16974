-- unpark: resumes a parked group: its messages are receivable again, as if they had never been received; or its first
--   one is dying.
-- KEYS 1 meta hash: generation, seq, drained, fifo, c:<tag>, n:<tag>, g:<tag>
-- KEYS 2 visible zset: offset by next visible ms
-- KEYS 3 delivery hash: offset -> delivery
-- KEYS 4 body hash: offset -> header and record
-- KEYS 5 outbox list: journal entries
-- KEYS 6 order zset: group and offset
-- KEYS 7 groups zset: groups by next ms
-- ARGV 1 generation
-- ARGV 2 now: ms, the time of the service; 0 = Redis' clock (tests)
-- ARGV 3 tag
-- ARGV 4 channel: wake-ups go there
-- ARGV 5 partition: the payload of a wake-up
-- ARGV 6 group: 8 bytes
-- ARGV 7 move_ms: how long a dying message waits for its mover, 0 = it does not die
-- OUT 1 status: NONE = the group is not parked, nothing is done
-- OUT 2 seq: of the last journal entry
-- OUT 3 message: {offset, count, first ms, nonce, body}
-- STATUS OK NONE FULL LOST
-- INV a group is unparked once, however often that is asked for; of those behind the first the counts begin anew of
--   what nobody has now
-- COST O(500 log open)
-- VERSION 1
-- INCLUDE clock unit groups
local meta, visible, delivery, body, outbox, order, groups =
  KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6], KEYS[7]
local unit, refused = guard(meta, ARGV[1], ARGV[3], visible, delivery, order, groups)
refused = refused or blocked(unit, meta, outbox)
if refused then return refused end
local now, tag, group, move_ms = clock(ARGV[2]), tonumber(ARGV[3]), ARGV[6], tonumber(ARGV[7])
local low, high = group_range(group)
local member = unit.fifo and redis.call('ZRANGEBYLEX', order, low, high, 'LIMIT', 0, 1)[1]
local off = member and struct.unpack('>I8', member, 9)
local d = off and delivery_read(delivery, off)
if not d or d.flag ~= 4 then return {'NONE', 0, {}} end
local seq
if move_ms > 0 then
  d.flag, d.time = 1, now + move_ms
  seq = journal(meta, outbox, now, 'dying', tag, {off}, {d.time}, 'killed')
  d.nonce = seq
  delivery_write(delivery, off, d)
  redis.call('ZADD', visible, d.time, off)
end
-- What is behind the first message was received with it, perhaps: it would park the group at once.
local fresh, times = {}, {}
for place, other in ipairs(redis.call('ZRANGEBYLEX', order, low, high, 'LIMIT', 0, 500)) do
  local at = struct.unpack('>I8', other, 9)
  local o = delivery_read(delivery, at)
  if place == 1 and move_ms == 0 or place > 1 and o.count > 0 and o.flag == 0 and o.time <= now then
    o.flag, o.time, o.nonce, o.count = 0, now, 0, 0
    delivery_write(delivery, at, o)
    redis.call('ZADD', visible, now, at)
    fresh[#fresh + 1], times[#times + 1] = at, now
  end
end
if #fresh > 0 then seq = journal(meta, outbox, now, 'unparked', tag, fresh, times) end
if regroup(order, groups, delivery, group, now) then redis.call('PUBLISH', ARGV[4], ARGV[5]) end
return {'OK', seq, {off, d.count, d.first, d.nonce, redis.call('HGET', body, off) or ''}}
