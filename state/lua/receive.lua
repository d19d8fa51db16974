-- receive: lends the due messages with the lowest visible times to one caller; each is invisible until its deadline from then on. In a FIFO unit: the first messages of groups, up to the first that is not due. In a fair one: those of groups with much in flight only when nothing else is due.
-- KEYS 1 meta hash: generation, seq, drained, bytes, fifo, c:<tag>, n:<tag>, g:<tag>
-- KEYS 2 visible zset: offset by next visible ms
-- KEYS 3 delivery hash: offset -> delivery
-- KEYS 4 body hash: offset -> header (sent ms, due ms, lease ms or -1) and record
-- KEYS 5 refs hash: offset -> holders
-- KEYS 6 outbox list: journal entries
-- KEYS 7 order zset: group and offset
-- KEYS 8 groups zset: groups, by next ms (FIFO) or by how many are in flight (fair)
-- KEYS 9 delayed zset: offset by due ms
-- ARGV 1 generation
-- ARGV 2 now: ms, 0 = Redis' clock
-- ARGV 3 tag
-- ARGV 4 max: 1-100
-- ARGV 5 lease_ms: -1 = the message's own, else the queue's
-- ARGV 6 queue_lease_ms
-- ARGV 7 max_receive_count: 0 = no dead-letter queue
-- ARGV 8 retention_ms
-- ARGV 9 move_ms: how long a dying message waits for its mover
-- ARGV 10 window_bytes: above half of it a leased message gives up its body
-- ARGV 11 window_messages: above half of as many bodies too
-- ARGV 12 until_ms: what is visible later is left, 0 = now; neither FIFO nor fair
-- OUT {status, now, nonce, when the next is visible (ms) or -1, cursor, open, how many of them are lent (of few: 0), hungry: 1 or 0, {offset, count, first ms, deadline ms, body ...}, {offset, count, first ms, nonce, again ms or 0, reason, body ...}}; the second list is dying: the caller moves it; then a deadline and the offsets that are lent until it for the first time, without bodies
-- STATUS OK FULL LOST
-- INV a message is lent to one caller at a time; each delivery adds one to its count; nonce is the seq of its entry; a group lends nothing behind a message that is lent
-- COST O(max log open); fair: and O(1000) of what is set back for the first time
-- VERSION 4
-- INCLUDE clock journal delivery guard groups fair head oldest lent settle
local meta, visible, delivery, body, refs, outbox = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6]
local order, groups, delayed = KEYS[7], KEYS[8], KEYS[9]
local unit, refused = guard(meta, ARGV[1], ARGV[3], visible, delivery, order, groups)
refused = refused or blocked(unit, meta, outbox)
if refused then return refused end
local now, tag, max = clock(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local lease_ms, queue_lease_ms, max_receive_count, retention_ms = tonumber(ARGV[5]), tonumber(ARGV[6]), tonumber(ARGV[7]), tonumber(ARGV[8])
local move_ms, window_bytes, window_messages, until_ms = tonumber(ARGV[9]), tonumber(ARGV[10]), tonumber(ARGV[11]), tonumber(ARGV[12])
until_ms = until_ms > 0 and math.min(until_ms, now) or now
local held = redis.call('HLEN', body)
-- Whether something may be beyond its retention.
local aged = #redis.call('ZRANGEBYSCORE', visible, '-inf', now - retention_ms, 'LIMIT', 0, 1) > 0
local offsets, deadlines, lapsed, expired, lent, fresh, dying, touched, REASON = {}, {}, {}, {}, {}, {}, {}, {}, {'killed', 'exhausted'}
-- Marks a message as dying; a second time (its mover was lost) `again` is until when that mover had it.
local function die(off, d, packed)
  if not unit.fifo then leave(order, groups, off, d) end
  local again = (d.flag == 1 or d.flag == 2) and d.time or 0
  if again == 0 then d.flag = 2 end
  d.time = now + move_ms
  d.nonce = journal(meta, outbox, now, 'dying', tag, {off}, {d.time}, REASON[d.flag])
  delivery_write(delivery, off, d)
  redis.call('ZADD', visible, d.time, off)
  for _, v in ipairs({off, d.count, d.first, d.nonce, again, REASON[d.flag], packed or ''}) do dying[#dying + 1] = v end
end
local function lend(off, d, packed)
  local own = -1
  if packed then local _, _, ms = struct.unpack('>I8I8i8', packed) own = ms end
  local ms = lease_ms
  if ms < 0 then ms = own >= 0 and own or queue_lease_ms end
  -- One call lends a message once, also with a lease of 0.
  ms = math.max(ms, 1)
  if not unit.fifo and d.group and d.group ~= '' then
    leave(order, groups, off, d)
    in_flight(groups, d.group, 1)
  end
  if d.count == 0 then d.first = now end
  d.count, d.flag, d.time = d.count + 1, 0, now + ms
  lent[#lent + 1] = {off, d, packed}
  offsets[#offsets + 1], deadlines[#deadlines + 1] = off, d.time
end
-- What becomes of a due message: it expires, dies (true) or is lent.
local function consider(off, d, packed)
  d = d or {nonce = 0, count = 0, first = 0, flag = 0, time = 0}
  if d.nonce ~= 0 and d.flag == 0 then lapsed[#lapsed + 1] = off end
  if d.flag ~= 1 and d.flag ~= 2 and due_of(visible, off, d, packed, aged) + retention_ms <= now then
    settle(meta, visible, delivery, body, refs, {off})
    if unit.fifo then settle_ordered(order, off, d.group, touched) else leave(order, groups, off, d) end
    expired[#expired + 1] = off
    return false
  end
  if max_receive_count > 0 and (d.flag == 1 or d.flag == 2 or d.count >= max_receive_count) then
    die(off, d, packed)
    return true
  end
  lend(off, d, packed)
  return false
end
local fresh_until = now + math.max(lease_ms < 0 and queue_lease_ms or lease_ms, 1)
local function any_due()
  local rounds = 0
  repeat
    local asked = max - #lent - #fresh
    local due = oldest(visible, until_ms, asked)
    local before, row = #lent, {}
    if #due > 0 then
      local deliveries, bodies = redis.call('HMGET', delivery, unpack(due)), held > 0 and redis.call('HMGET', body, unpack(due)) or {}
      for i, member in ipairs(due) do
        local off = tonumber(member)
        if deliveries[i] or bodies[i] or aged then
          consider(off, delivery_of(deliveries[i]), bodies[i])
        else
          fresh[#fresh + 1], row[#row + 1], row[#row + 2] = off, fresh_until, member
        end
      end
      hide(visible, lent, before)
      show(visible, row)
    end
    rounds = rounds + 1
  until #due < asked or #lent + #fresh >= max or rounds >= 10
end
-- Fair: what is due of quiet groups, or of none, by time. What is met of noisy ones is set back.
local function quiet_due()
  local met = 0
  repeat
    local due = redis.call('ZRANGEBYSCORE', visible, 0, now, 'LIMIT', 0, max - #lent + 20)
    local before = #lent
    for _, member in ipairs(due) do
      local off = tonumber(member)
      local d = #lent < max and delivery_read(delivery, off)
      if d and d.group ~= '' and noisy(groups, d.group) then
        set_back(visible, order, groups, off, d.group, d.time)
      elseif #lent < max then
        consider(off, d or nil, redis.call('HGET', body, off))
      end
    end
    hide(visible, lent, before)
    met = met + #due
  until #due == 0 or #lent >= max or met >= 1000
end
-- Fair: what is set back, of those with the fewest in flight first.
local function noisy_due()
  local off, rounds = first_back(order, groups), 0
  while off and #lent < max and rounds < 500 do
    local before = #lent
    consider(off, delivery_read(delivery, off), redis.call('HGET', body, off))
    if #lent > before then redis.call('ZADD', visible, lent[#lent][2].time, off) end
    off, rounds = first_back(order, groups), rounds + 1
  end
end
local function fair_due()
  -- A group that is quiet again: its first message is in line again, by its time.
  local off, group = first_back(order, groups)
  if off and not noisy(groups, group) then
    take_back(order, groups, off, group)
    redis.call('ZADD', visible, delivery_read(delivery, off).time, off)
  end
  quiet_due()
  noisy_due()
end
-- As many of a group as the caller takes, in order: to the first that is not due (lent, say), or dies.
local function first_of(group)
  local low, high = group_range(group)
  touched[group] = true
  for _, member in ipairs(redis.call('ZRANGEBYLEX', order, low, high, 'LIMIT', 0, max - #lent + 10)) do
    local off = struct.unpack('>I8', member, 9)
    local d = delivery_read(delivery, off)
    if not d or d.time > now or #lent >= max or consider(off, d, redis.call('HGET', body, off)) then return end
  end
end
if unit.fifo then
  for _, group in ipairs(redis.call('ZRANGEBYSCORE', groups, '-inf', '(' .. now + 1, 'LIMIT', 0, max)) do
    if #lent < max then first_of(group) end
  end
elseif unit.fair then
  fair_due()
else
  any_due()
end
if #lapsed > 0 then journal(meta, outbox, now, 'lapsed', tag, lapsed) end
if #expired > 0 then journal(meta, outbox, now, 'expired', tag, expired) end
local nonce, out = 0, {}
if #lent + #fresh > 0 then
  for _, off in ipairs(fresh) do offsets[#offsets + 1], deadlines[#deadlines + 1] = off, fresh_until end
  nonce = journal(meta, outbox, now, 'leased', tag, offsets, deadlines)
  local full = held > window_messages / 2 or held > 0 and tonumber(redis.call('HGET', meta, 'bytes') or '0') > window_bytes / 2
  local shared = full and redis.call('EXISTS', refs) == 1
  local row, dropped = {}, {}
  for _, l in ipairs(lent) do
    local off, d, packed = l[1], l[2], l[3]
    d.nonce = nonce
    row[#row + 1], row[#row + 2] = off, delivery_packed(d)
    if full and packed and not (shared and redis.call('HEXISTS', refs, off) == 1) then dropped[#dropped + 1] = off end
    for _, v in ipairs({off, d.count, d.first, d.time, packed or ''}) do out[#out + 1] = v end
  end
  local first = delivery_packed({nonce = nonce, count = 1, first = now, flag = 0, time = fresh_until})
  for _, off in ipairs(fresh) do row[#row + 1], row[#row + 2] = off, first end
  redis.call('HSET', delivery, unpack(row))
  if unit.fifo then hide(visible, lent, 0) end
  drop_bodies(meta, body, refs, dropped)
end
if unit.fifo then regroup_all(order, groups, delivery, touched, now) end
if unit.fifo or unit.fair then seal_groups(meta, ARGV[3], order, groups) end
if #lent + #fresh + #dying + #expired > 0 then seal(meta, ARGV[3], visible, delivery) end
local open = redis.call('ZCARD', visible)
local head, hungry = head_of(unit, visible, groups, now)
return {'OK', now, nonce, head, unit.cursor, open, lent_of(visible, delayed, open, now), hungry and 1 or 0, out, dying, fresh_until, fresh}
