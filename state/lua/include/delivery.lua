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
