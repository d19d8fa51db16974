-- receive_fifo: leases the first messages of groups to one caller, of each up to the first that is not due; groups by
--   when they became due.
-- KEYS 1 meta hash: generation, shown, seq, drained, bytes, fifo, c:<tag>, n:<tag>, g:<tag>,
--   leased:<tag>, leased_again:<tag>
-- KEYS 2 visible zset: offset by next visible ms
-- KEYS 3 delivery hash: offset -> delivery
-- KEYS 4 body hash: offset -> header (sent ms, due ms, lease ms or -1) and record
-- KEYS 5 refs hash: offset -> holders
-- KEYS 6 outbox list: journal entries
-- KEYS 7 delayed zset: offset by due ms
-- KEYS 8 order zset: group and offset
-- KEYS 9 groups zset: groups by next ms
-- KEYS + per partition of the tag if it has a max_in_flight: meta hash, visible and delayed zset
-- ARGV 1 generation
-- ARGV 2 now: ms, the time of the service; 0 = Redis' clock (tests)
-- ARGV 3 tag
-- ARGV 4 max: 1-100
-- ARGV 5 lease_ms: -1 = the message's own, else the queue's
-- ARGV 6 queue_lease_ms
-- ARGV 7 max_receive_count: 0 = no dead-letter queue
-- ARGV 8 retention_ms
-- ARGV 9 move_ms: how long a dying message waits for its mover
-- ARGV 10 window_bytes: above half of it a leased message gives up its body
-- ARGV 11 window_messages: above half of as many bodies too
-- ARGV 12 max_in_flight: messages of the tag that may be leased at once, in all partitions; 0 = no bound
-- ARGV 13 per_group: messages of a group that may be leased at once, 0 = as many as there are
-- ARGV 14 park_count: a message that was received so often is not leased, and parks its group when it is the first; 0 =
--   never
-- OUT 1 status: STANDARD = nothing is done; the unit is not FIFO
-- OUT 2 now: ms
-- OUT 3 nonce: of all that is leased
-- OUT 4 head: when the next is visible (ms), or since when; -1 = nothing is open
-- OUT 5 cursor
-- OUT 6 open: messages of the tag
-- OUT 7 leased_count: how many of them are leased; of few open ones it is not counted: 0
-- OUT 8 hungry: 1 = nothing more is free now, so the window takes more than bodies for;
--   2 = as much of the tag is in flight as may be; else 0
-- OUT 9 leased: {offset, count, first ms, deadline ms, body ...}
-- OUT 10 dying: {offset, count, first ms, nonce, again ms or 0, reason, body ...}; the caller moves them
-- OUT 11 parked: offsets
-- STATUS OK STANDARD FULL LOST
-- INV as of receive; a group leases nothing behind a message that is leased; a parked message is the first of its group
-- COST O(max log open), and O(partitions log open) with a max_in_flight
-- VERSION 6
-- INCLUDE clock unit groups head settle lease
local meta, visible, delivery, body, order, groups = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[8], KEYS[9]
local unit, refused = guard(meta, ARGV[1], ARGV[3], visible, delivery, order, groups)
refused = refused or not unit.fifo and {'STANDARD'} or blocked(unit, meta, KEYS[6])
if refused then return refused end
local r, lost = begin_receive(unit, 10)
if lost then return lost end
local now, max, leased, touched, parked = r.now, r.max, r.leased, {}, {}
local per_group, park_count = ARGV[13] == '0' and max or tonumber(ARGV[13]), tonumber(ARGV[14])
-- LAST: ms, as vocabulary.LAST_MS.
local LAST = 253402300799000
local function park(off, d, packed)
  local until_ms = math.min(due_of(visible, off, d, packed, r.aged) + r.retention_ms, LAST)
  d.flag, d.time = 4, PARKED + until_ms
  d.nonce = journal(meta, KEYS[6], now, 'parked', r.tag, {off}, {until_ms})
  delivery_write(delivery, off, d)
  redis.call('ZADD', visible, d.time, off)
  parked[#parked + 1] = off
end
local function is_spent(d)
  return d.flag == 4 or park_count > 0 and d.count >= park_count and d.flag ~= 1 and d.flag ~= 2
end
-- As many of a group as the caller takes, in order: to the first that is not due (leased, say), or dies.
local function first_of(group)
  local low, high = group_range(group)
  touched[group] = true
  local most = math.min(max, #leased + per_group)
  local first = true
  for _, member in ipairs(redis.call('ZRANGEBYLEX', order, low, high, 'LIMIT', 0, max - #leased + 10)) do
    local off = struct.unpack('>I8', member, 9)
    local d = delivery_read(delivery, off)
    if not d or (d.flag == 4 and d.time - PARKED or d.time) > now or #leased >= most and d.flag ~= 4 then return end
    -- What is before a spent message may be settled yet, so only the first one parks its group.
    local spent = is_spent(d)
    if spent and not first then return end
    local packed = redis.call('HGET', body, off)
    local became = consider(r, off, d, packed, spent)
    if became == 'expired' then settle_ordered(order, off, d.group, touched) else first = false end
    if became == 'spent' then park(off, d, packed) end
    if became == 'dying' or became == 'spent' then return end
  end
end
-- More than `max` groups only where some of the first die, expire, or are parked now.
local seen, MOST_SEEN = 0, 100
repeat
  local some = redis.call('ZRANGEBYSCORE', groups, '-inf', '(' .. now + 1, 'LIMIT', seen, max)
  for _, group in ipairs(some) do
    if #leased < max then first_of(group) end
  end
  seen = seen + #some
until #leased >= max or #some < max or seen >= MOST_SEEN
-- What is parked expires as anything else does.
for _, group in ipairs(redis.call('ZRANGEBYSCORE', groups, PARKED, PARKED + now, 'LIMIT', 0, 10)) do first_of(group) end
local nonce, out = write_receive(r, 0)
hide(visible, leased, 0)
regroup_all(order, groups, delivery, touched, now)
seal_groups(meta, ARGV[3], order, groups)
local open = redis.call('ZCARD', visible)
local leased_count = leased_of(visible, KEYS[7], open, now)
local head, hungry = head_after(r, unit, groups)
return {'OK', now, nonce, head, unit.cursor, open, leased_count, hungry, out, r.dying, parked}
