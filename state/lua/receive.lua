-- receive: leases the due messages with the lowest visible times to one caller; each is invisible until its deadline
--   from then on.
-- KEYS 1 meta hash: generation, shown, seq, drained, bytes, fifo, c:<tag>, n:<tag>, g:<tag>,
--   leased:<tag>, leased_again:<tag>
-- KEYS 2 visible zset: offset by next visible ms
-- KEYS 3 delivery hash: offset -> delivery
-- KEYS 4 body hash: offset -> header (sent ms, due ms, lease ms or -1) and record
-- KEYS 5 refs hash: offset -> holders
-- KEYS 6 outbox list: journal entries
-- KEYS 7 delayed zset: offset by due ms
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
-- ARGV 13 until_ms: what is visible later is left, 0 = now
-- OUT 1 status: FIFO and FAIR = nothing is done; the unit is of that kind, which has a script of its own
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
-- OUT 11 fresh_until: the deadline of what is leased for the first time, without bodies
-- OUT 12 fresh: {offset ...}: those
-- OUT 13 since: from when on (ms) each message without a body was visible, of leased, then of fresh; with a blank
--   between two
-- STATUS OK FIFO FAIR FULL LOST
-- INV a message is leased to one caller at a time; each delivery adds one to its count; nonce is the seq of its entry
-- COST O(max log open), and O(partitions log open) with a max_in_flight
-- VERSION 9
-- PLAIN plain/receive.lua
-- INCLUDE clock unit head settle lease
local meta, visible, delivery, body = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local unit, refused = guard(meta, ARGV[1], ARGV[3], visible, delivery)
refused = refused or unit.fifo and {'FIFO'} or unit.fair and {'FAIR'} or blocked(unit, meta, KEYS[6])
if refused then return refused end
local r, lost = begin_receive(unit, 8)
if lost then return lost end
local now, max, until_ms, leased, fresh = r.now, r.max, tonumber(ARGV[13]), r.leased, r.fresh
until_ms = until_ms > 0 and math.min(until_ms, now) or now
local fresh_until = now + math.max(r.lease_ms < 0 and r.queue_lease_ms or r.lease_ms, 1)
local rounds, asked, found, since, fresh_since = 0, 0, 0, {}, {}
repeat
  asked = max - #leased - #fresh
  if asked == 0 then break end
  local due, times = oldest(visible, until_ms, asked)
  local before, row = #leased, {}
  found = #due
  if found > 0 then
    local deliveries, bodies =
      redis.call('HMGET', delivery, unpack(due)), r.held > 0 and redis.call('HMGET', body, unpack(due)) or {}
    for i, member in ipairs(due) do
      local off, at = tonumber(member), not bodies[i] and times[i]
      if deliveries[i] or bodies[i] or r.aged then
        if consider(r, off, delivery_of(deliveries[i]), bodies[i]) == 'leased' and at then since[#since + 1] = at end
      else
        fresh[#fresh + 1], fresh_since[#fresh_since + 1], row[#row + 1], row[#row + 2] = off, at, fresh_until, member
      end
    end
    hide(visible, leased, before)
    show(visible, row)
  end
  rounds = rounds + 1
until found < asked or #leased + #fresh >= max or rounds >= 10
local nonce, out = write_receive(r, fresh_until)
local open = redis.call('ZCARD', visible)
local leased_count = leased_of(visible, KEYS[7], open, now)
local head, hungry = head_after(r, unit, nil)
for _, at in ipairs(fresh_since) do since[#since + 1] = at end
since = table.concat(since, ' ')
return {'OK', now, nonce, head, unit.cursor, open, leased_count, hungry, out, r.dying, fresh_until, fresh,
  since}
