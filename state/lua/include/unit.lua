-- What the scripts of a unit share: its journal, its deliveries, and the guard against what Redis has lost.
-- Appends one entry to the outbox and returns its seq. `times` is a list or nil; `reason` a word or nil.
local function journal(meta, outbox, now, kind, tag, offsets, times, reason)
  local seq = redis.call('HINCRBY', meta, 'seq', 1)
  redis.call('RPUSH', outbox, cmsgpack.pack({seq, now, kind, tag, offsets, times or 0, reason or ''}))
  return seq
end
-- Adds to what was ever done under a tag: a field of the meta hash for each kind, as Totals of schemas/records.
local function total(meta, kind, tag, by) redis.call('HINCRBY', meta, kind .. ':' .. tag, by) end
-- A delivery is nonce, receive count, first receive (ms), flag, deadline or next visible time (ms), and in FIFO units
-- the message's group (8 bytes). nonce 0 = not leased. flag: 0 none, 1 killed, 2 exhausted (both: to be moved to the
-- dead-letter queue), 3 claimed by a task, 4 parked.
local DELIVERY = '>I8I4I8I1I8'
local function delivery_of(v)
  if not v then return nil end
  local nonce, count, first, flag, time = struct.unpack(DELIVERY, v)
  return {nonce = nonce, count = count, first = first, flag = flag, time = time, group = string.sub(v, 30)}
end
local function delivery_read(delivery, off) return delivery_of(redis.call('HGET', delivery, off)) end
local function delivery_packed(d)
  return struct.pack(DELIVERY, d.nonce, d.count, d.first, d.flag, d.time) .. (d.group or '')
end
local function delivery_write(delivery, off, d) redis.call('HSET', delivery, off, delivery_packed(d)) end
-- Puts messages in line: row is visible time, offset, and so on.
local function show(visible, row)
  if #row > 0 then redis.call('ZADD', visible, unpack(row)) end
end
-- Of what is leased, rows {offset, delivery}, those behind the first `before` come again at their deadlines.
local function hide(visible, leased, before)
  local row = {}
  for i = before + 1, #leased do row[#row + 1], row[#row + 2] = leased[i][2].time, leased[i][1] end
  show(visible, row)
end
-- When a message was due. Without a body: what was never leased is visible since then (`aged`: it may be long ago, else
-- now will do), what was leased was due by its first time.
local function due_of(visible, off, d, packed, aged)
  if packed then return select(2, struct.unpack('>I8I8', packed)) end
  if d.first > 0 then return d.first end
  if d.count > 0 or d.nonce ~= 0 then return math.huge end
  return d.time > 0 and d.time or aged and tonumber(redis.call('ZSCORE', visible, off)) or math.huge
end
-- A parked message (flag 4) is visible when its retention ends, and so much (ms) later: behind all that is not parked.
-- PARKED: ms, as vocabulary.PARKED_MS.
local PARKED = 4000000000000000
-- Stops a unit that has lost something from serving (its generation goes), so that it is rebuilt before any wrong
-- answer.
local function broken(meta)
  redis.call('HDEL', meta, 'generation')
  return {'LOST'}
end
-- The unit and one tag as the last script left them, or nil and the reply to give. n:<tag> seals how many messages are
-- open and have a delivery, g:<tag> how many are in order and in groups: in FIFO units, and in those that ever had a
-- message with a group (fair).
local function guard(meta, generation, tag, visible, delivery, order, groups)
  local m = redis.call('HMGET', meta, 'generation', 'c:' .. tag, 'n:' .. tag, 'fifo', 'a:' .. tag, 'seq', 'drained',
    'g:' .. tag, 'shown')
  if m[1] ~= generation then return nil, {'LOST'} end
  -- A tag that has neither was never opened here, or is closed.
  if not m[2] and not m[3] then return nil, {'LOST'} end
  if not m[2] or m[3] ~= redis.call('ZCARD', visible) .. ':' .. redis.call('HLEN', delivery) then
    return nil, broken(meta)
  end
  local fifo = m[4] == '1'
  local fair = not fifo and m[8] ~= '0:0'
  if (fifo or fair) and order and m[8] ~= redis.call('ZCARD', order) .. ':' .. redis.call('ZCARD', groups) then
    return nil, broken(meta)
  end
  return {cursor = tonumber(m[2]), fifo = fifo, fair = fair, ahead = m[5], seq = m[6], drained = m[7],
    shown = tonumber(m[9] or '0')}
end
-- The time of the service for who looks for messages: no earlier than when one without a delay was shown here. The
-- clocks of workers differ by some ms, and what was just sent by one is to be found by another.
local function unit_clock(unit, given) return math.max(clock(given), unit.shown) end
-- Seals what a tag holds now.
local function seal(meta, tag, visible, delivery)
  redis.call('HSET', meta, 'n:' .. tag, redis.call('ZCARD', visible) .. ':' .. redis.call('HLEN', delivery))
end
local function seal_groups(meta, tag, order, groups)
  redis.call('HSET', meta, 'g:' .. tag, redis.call('ZCARD', order) .. ':' .. redis.call('ZCARD', groups))
end
-- LIMIT: entries of an outbox that is full, as vocabulary.OUTBOX_LIMIT.
local LIMIT = 20000
-- The reply when the outbox is full or has lost entries, else nil: it holds exactly what was written and not drained.
local function blocked(unit, meta, outbox)
  local held = redis.call('LLEN', outbox)
  if not unit.seq or not unit.drained or held ~= unit.seq - unit.drained then return broken(meta) end
  if held >= LIMIT then return {'FULL'} end
  return nil
end
-- Whether the set of offsets taken ahead of the cursor, or the zset of delayed ones, has as many members as the last
-- script left there.
local function ahead_whole(unit, ahead) return unit.ahead == tostring(redis.call('SCARD', ahead)) end
local function seal_ahead(meta, tag, ahead) redis.call('HSET', meta, 'a:' .. tag, redis.call('SCARD', ahead)) end
local function delayed_whole(meta, tag, delayed)
  return redis.call('HGET', meta, 'd:' .. tag) == tostring(redis.call('ZCARD', delayed))
end
local function seal_delayed(meta, tag, delayed) redis.call('HSET', meta, 'd:' .. tag, redis.call('ZCARD', delayed)) end
