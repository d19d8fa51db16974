-- receive_fair: leases due messages to one caller, those of groups with much in flight only when nothing else is due.
-- KEYS 1 meta hash: generation, shown, seq, drained, bytes, fifo, c:<tag>, n:<tag>, g:<tag>,
--   leased:<tag>, leased_again:<tag>
-- KEYS 2 visible zset: offset by next visible ms; a negative time = set back
-- KEYS 3 delivery hash: offset -> delivery
-- KEYS 4 body hash: offset -> header (sent ms, due ms, lease ms or -1) and record
-- KEYS 5 refs hash: offset -> holders
-- KEYS 6 outbox list: journal entries
-- KEYS 7 delayed zset: offset by due ms
-- KEYS 8 order zset: group and offset of what is set back
-- KEYS 9 groups zset: groups by how many are in flight
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
-- OUT 1 status: STANDARD = nothing is done; the unit is not fair
-- OUT 2 now: ms
-- OUT 3 nonce: of all that is leased
-- OUT 4 head: when the next is visible (ms), now if one is due; -1 = nothing is open
-- OUT 5 cursor
-- OUT 6 open: messages of the tag
-- OUT 7 leased_count: how many of them are leased; of few open ones it is not counted: 0
-- OUT 8 hungry: 1 = nothing more of quiet groups is free now, so the window takes more than bodies for;
--   2 = as much of the tag is in flight as may be; else 0
-- OUT 9 leased: {offset, count, first ms, deadline ms, body ...}
-- OUT 10 dying: {offset, count, first ms, nonce, again ms or 0, reason, body ...}; the caller moves them
-- STATUS OK STANDARD FULL LOST
-- INV as of receive
-- COST O(max log open), O(partitions log open) with a max_in_flight, and O(1000) of what is set back for the first time
-- VERSION 4
-- INCLUDE clock unit groups fair head settle lease
local meta, visible, delivery, body, order, groups = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[8], KEYS[9]
local unit, refused = guard(meta, ARGV[1], ARGV[3], visible, delivery, order, groups)
refused = refused or not unit.fair and {'STANDARD'} or blocked(unit, meta, KEYS[6])
if refused then return refused end
local r, lost = begin_receive(unit, 10)
if lost then return lost end
local now, max, leased = r.now, r.max, r.leased
-- A message that is met leaves its group's count, and comes in again when it is leased.
local function meet(off, d)
  leave(order, groups, off, d)
  if consider(r, off, d, redis.call('HGET', body, off)) ~= 'leased' then return false end
  if d and d.group ~= '' then in_flight(groups, d.group, 1) end
  return true
end
-- What is due of quiet groups, or of none, by time. What is met of noisy ones is set back.
local function quiet_due()
  local met = 0
  repeat
    local due = redis.call('ZRANGEBYSCORE', visible, 0, now, 'LIMIT', 0, max - #leased + 20)
    local before = #leased
    for _, member in ipairs(due) do
      local off = tonumber(member)
      local d = #leased < max and delivery_read(delivery, off) or nil
      if d and d.group ~= '' and noisy(groups, d.group) then
        set_back(visible, order, groups, off, d.group, d.time)
      elseif #leased < max then
        meet(off, d)
      end
    end
    hide(visible, leased, before)
    met = met + #due
  until #due == 0 or #leased >= max or met >= 1000
end
-- What is set back, of those with the fewest in flight first.
local function noisy_due()
  local off, rounds = first_back(order, groups), 0
  while off and #leased < max and rounds < 500 do
    if meet(off, delivery_read(delivery, off)) then redis.call('ZADD', visible, leased[#leased][2].time, off) end
    off, rounds = first_back(order, groups), rounds + 1
  end
end
-- A group that is quiet again: its first message is in line again, by its time.
local off, group = first_back(order, groups)
if off and not noisy(groups, group) then
  take_back(order, groups, off, group)
  redis.call('ZADD', visible, delivery_read(delivery, off).time, off)
end
quiet_due()
noisy_due()
local nonce, out = write_receive(r, 0)
seal_groups(meta, ARGV[3], order, groups)
local open = redis.call('ZCARD', visible)
local leased_count = leased_of(visible, KEYS[7], open, now)
local head, hungry = head_after(r, unit, groups)
return {'OK', now, nonce, head, unit.cursor, open, leased_count, hungry, out, r.dying}
