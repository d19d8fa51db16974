-- FIFO. order has group and offset of each open message, so that a group's messages follow each other. groups has each group's next
-- time: while a message of it is lent the latest deadline, else when its first message is due.
local function place(off, group) return group .. struct.pack('>I8', off) end
local function group_range(group) return '[' .. group .. string.rep('\0', 8), '[' .. group .. string.rep('\255', 8) end
local function group_add(order, groups, off, group, time)
  redis.call('ZADD', order, 0, place(off, group))
  redis.call('ZADD', groups, 'NX', time, group)
end
-- Sets a group's next time anew. Only its first messages may be lent: up to the first that never was.
local function regroup(order, groups, delivery, group, now)
  local low, high = group_range(group)
  local first, held, at = nil, 0, 0
  repeat
    local members = redis.call('ZRANGEBYLEX', order, low, high, 'LIMIT', at, 20)
    local fresh = false
    for _, member in ipairs(members) do
      local d = delivery_read(delivery, struct.unpack('>I8', member, 9))
      first = first or d.time
      if d.nonce ~= 0 and d.time > now then held = math.max(held, d.time) end
      fresh = d.nonce == 0 and d.count == 0
      if fresh then break end
    end
    at = at + #members
  until fresh or #members < 20
  if not first then
    redis.call('ZREM', groups, group)
    return false
  end
  -- A group that is due again goes behind the groups that were due before it.
  redis.call('ZADD', groups, held > 0 and held or math.max(first, now), group)
  return held == 0
end
-- Sets the next times of the groups (keys of the table) anew; true when one of them has a message that may be lent.
local function regroup_all(order, groups, delivery, touched, now)
  local free = false
  for group in pairs(touched) do free = regroup(order, groups, delivery, group, now) or free end
  return free
end
