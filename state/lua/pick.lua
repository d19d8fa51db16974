-- pick: leases those of the given messages that are due to one caller; as receive and receive_fair, which take the
--   oldest.
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
-- ARGV 4 max: of the given messages
-- ARGV 5 lease_ms: -1 = the message's own, else the queue's
-- ARGV 6 queue_lease_ms
-- ARGV 7 max_receive_count: 0 = no dead-letter queue
-- ARGV 8 retention_ms
-- ARGV 9 move_ms: how long a dying message waits for its mover
-- ARGV 10 window_bytes: above half of it a leased message gives up its body
-- ARGV 11 window_messages: above half of as many bodies too
-- ARGV 12 max_in_flight: messages of the tag that may be leased at once, in all partitions; 0 = no bound
-- ARGV + per message: offset
-- OUT 1 status: FIFO = nothing is done; groups have an order
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
-- STATUS OK FIFO FULL LOST
-- INV as of receive
-- COST O(offsets log open), and O(partitions log open) with a max_in_flight
-- VERSION 4
-- INCLUDE clock unit groups fair head settle lease
local meta, visible, delivery, body, order, groups = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[8], KEYS[9]
local unit, refused = guard(meta, ARGV[1], ARGV[3], visible, delivery, order, groups)
refused = refused or unit.fifo and {'FIFO'} or blocked(unit, meta, KEYS[6])
if refused then return refused end
local r, lost = begin_receive(unit, 10)
if lost then return lost end
local now, leased = r.now, r.leased
for a = 13, #ARGV do
  local off = tonumber(ARGV[a])
  local at = #leased < r.max and redis.call('ZSCORE', visible, off)
  if at and tonumber(at) <= now then
    local d = delivery_read(delivery, off)
    if unit.fair then leave(order, groups, off, d) end
    if consider(r, off, d, redis.call('HGET', body, off)) == 'leased' then
      redis.call('ZADD', visible, leased[#leased][2].time, off)
      if unit.fair and d and d.group ~= '' then in_flight(groups, d.group, 1) end
    end
  end
end
local nonce, out = write_receive(r, 0)
if unit.fair then seal_groups(meta, ARGV[3], order, groups) end
local open = redis.call('ZCARD', visible)
local leased_count = leased_of(visible, KEYS[7], open, now)
local head, hungry = head_after(r, unit, unit.fair and groups or nil)
return {'OK', now, nonce, head, unit.cursor, open, leased_count, hungry, out, r.dying}
