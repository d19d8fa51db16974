-- A delivery is nonce, receive count, first receive (ms), flag, deadline or next visible time (ms), and in FIFO units the message's group (8 bytes).
-- nonce 0 = not lent. flag: 0 none, 1 killed, 2 exhausted (both: to be moved to the dead-letter queue), 3 claimed by a task.
local DELIVERY = '>I8I4I8I1I8'
local function delivery_read(delivery, off)
  local v = redis.call('HGET', delivery, off)
  if not v then return nil end
  local nonce, count, first, flag, time = struct.unpack(DELIVERY, v)
  return {nonce = nonce, count = count, first = first, flag = flag, time = time, group = string.sub(v, 30)}
end
local function delivery_write(delivery, off, d)
  redis.call('HSET', delivery, off, struct.pack(DELIVERY, d.nonce, d.count, d.first, d.flag, d.time) .. (d.group or ''))
end
