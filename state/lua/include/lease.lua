-- What the three receives and pick share: their first keys and arguments are the same. `r` is one call: its keys, its
-- numbers, and what it has done so far: `leased` has rows {offset, delivery, packed}, `fresh` the offsets that are
-- leased for the first time, without bodies; `dying` is a part of the reply.
local REASON = {'killed', 'exhausted'}
-- How many more may be leased where `most` may be in flight: less what is in all partitions of the tag, whose meta
-- hash, visible and delayed zset are KEYS from `first` on. Nil = that is not known, for one of them has lost something.
-- A partition that does not have the tag yet, or any more, has none of it.
local function room_of(tag, now, most, first)
  for k = first, #KEYS, 3 do
    local meta, visible, delayed = KEYS[k], KEYS[k + 1], KEYS[k + 2]
    local m = redis.call('HMGET', meta, 'generation', 'n:' .. tag)
    if m[1] ~= ARGV[1] then return nil end
    if m[2] then
      local open = string.match(m[2], '^%d+')
      if open ~= tostring(redis.call('ZCARD', visible)) or not delayed_whole(meta, tag, delayed) then
        broken(meta)
        return nil
      end
      most = most - counted(visible, delayed, now)
    end
  end
  return math.max(0, most)
end
-- Or nil and the reply to give. `first`: as of room_of.
local function begin_receive(unit, first)
  local r = {
    meta = KEYS[1], visible = KEYS[2], delivery = KEYS[3], body = KEYS[4], refs = KEYS[5], outbox = KEYS[6],
    now = unit_clock(unit, ARGV[2]), tag = tonumber(ARGV[3]), max = tonumber(ARGV[4]), lease_ms = tonumber(ARGV[5]),
    queue_lease_ms = tonumber(ARGV[6]), max_receive_count = tonumber(ARGV[7]), retention_ms = tonumber(ARGV[8]),
    move_ms = tonumber(ARGV[9]), window_bytes = tonumber(ARGV[10]), window_messages = tonumber(ARGV[11]),
    leased = {}, fresh = {}, dying = {}, lapsed = {}, expired = {},
  }
  if ARGV[12] ~= '0' then
    r.room = room_of(ARGV[3], r.now, tonumber(ARGV[12]), first)
    if not r.room then return nil, {'LOST'} end
    r.max = math.min(r.max, r.room)
  end
  r.held = redis.call('HLEN', r.body)
  -- Whether something may be beyond its retention.
  r.aged = #redis.call('ZRANGEBYSCORE', r.visible, '-inf', r.now - r.retention_ms, 'LIMIT', 0, 1) > 0
  return r
end
-- Marks a message as dying; a second time (its mover was lost) `again` is until when that mover had it.
local function die(r, off, d, packed)
  local again = (d.flag == 1 or d.flag == 2) and d.time or 0
  if again == 0 then d.flag = 2 end
  d.time = r.now + r.move_ms
  d.nonce = journal(r.meta, r.outbox, r.now, 'dying', r.tag, {off}, {d.time}, REASON[d.flag])
  delivery_write(r.delivery, off, d)
  redis.call('ZADD', r.visible, d.time, off)
  local dying = r.dying
  for _, v in ipairs({off, d.count, d.first, d.nonce, again, REASON[d.flag], packed or ''}) do dying[#dying + 1] = v end
end
local function lease(r, off, d, packed)
  local own = -1
  if packed then local _, _, ms = struct.unpack('>I8I8i8', packed) own = ms end
  local ms = r.lease_ms
  if ms < 0 then ms = own >= 0 and own or r.queue_lease_ms end
  if d.first == 0 then d.first = r.now end
  -- One call leases a message once, also with a lease of 0.
  d.count, d.flag, d.time = d.count + 1, 0, r.now + math.max(ms, 1)
  r.leased[#r.leased + 1] = {off, d, packed}
end
-- What becomes of a due message: it has expired, is dying, or is leased; one that is `spent` is left to the caller, if
-- it has not expired.
local function consider(r, off, d, packed, spent)
  d = d or {nonce = 0, count = 0, first = 0, flag = 0, time = 0}
  if d.nonce ~= 0 and d.flag == 0 then r.lapsed[#r.lapsed + 1] = off end
  if d.flag ~= 1 and d.flag ~= 2 and due_of(r.visible, off, d, packed, r.aged) + r.retention_ms <= r.now then
    settle(r.meta, r.visible, r.delivery, r.body, r.refs, {off})
    r.expired[#r.expired + 1] = off
    return 'expired'
  end
  if spent then return 'spent' end
  if r.max_receive_count > 0 and (d.flag == 1 or d.flag == 2 or d.count >= r.max_receive_count) then
    die(r, off, d, packed)
    return 'dying'
  end
  lease(r, off, d, packed)
  return 'leased'
end
-- Writes the deliveries of what is leased, one entry for all; returns their nonce (0 = none) and their part of the
-- reply. Of a window that is half full they give up their bodies, but for those that other tags hold too.
local function write_leases(r, fresh_until)
  local offsets, deadlines, row, out, dropped = {}, {}, {}, {}, {}
  local again = 0
  for i, l in ipairs(r.leased) do
    offsets[i], deadlines[i] = l[1], l[2].time
    if l[2].count > 1 then again = again + 1 end
  end
  for _, off in ipairs(r.fresh) do offsets[#offsets + 1], deadlines[#deadlines + 1] = off, fresh_until end
  if #offsets == 0 then return 0, out end
  local nonce = journal(r.meta, r.outbox, r.now, 'leased', r.tag, offsets, deadlines)
  total(r.meta, 'leased', r.tag, #offsets)
  if again > 0 then total(r.meta, 'leased_again', r.tag, again) end
  local bytes = r.held > 0 and tonumber(redis.call('HGET', r.meta, 'bytes') or '0') or 0
  local full = r.held > r.window_messages / 2 or bytes > r.window_bytes / 2
  local shared = full and redis.call('EXISTS', r.refs) == 1
  for _, l in ipairs(r.leased) do
    local off, d, packed = l[1], l[2], l[3]
    d.nonce = nonce
    row[#row + 1], row[#row + 2] = off, delivery_packed(d)
    if full and packed and not (shared and redis.call('HEXISTS', r.refs, off) == 1) then dropped[#dropped + 1] = off end
    for _, v in ipairs({off, d.count, d.first, d.time, packed or ''}) do out[#out + 1] = v end
  end
  if #r.fresh > 0 then
    local first = delivery_packed({nonce = nonce, count = 1, first = r.now, flag = 0, time = fresh_until})
    for _, off in ipairs(r.fresh) do row[#row + 1], row[#row + 2] = off, first end
  end
  redis.call('HSET', r.delivery, unpack(row))
  drop_bodies(r.meta, r.body, r.refs, dropped)
  return nonce, out
end
-- Journals and writes what the receive has done, and seals it; returns as `write_leases` does.
local function write_receive(r, fresh_until)
  if #r.lapsed > 0 then journal(r.meta, r.outbox, r.now, 'lapsed', r.tag, r.lapsed) end
  if #r.expired > 0 then journal(r.meta, r.outbox, r.now, 'expired', r.tag, r.expired) end
  local nonce, out = write_leases(r, fresh_until)
  if nonce > 0 or #r.dying + #r.expired > 0 then seal(r.meta, r.tag, r.visible, r.delivery) end
  return nonce, out
end
-- The head, as of head_of; and 1 if the unit is hungry, 2 if something is due that nobody gets, for as much of the tag
-- is in flight as may be, else 0.
local function head_after(r, unit, groups)
  local head, hungry = head_of(unit, r.visible, groups, r.now)
  local full = r.room and #r.leased + #r.fresh >= r.room and head >= 0 and head <= r.now
  return head, full and 2 or hungry and 1 or 0
end
