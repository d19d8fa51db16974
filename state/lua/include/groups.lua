-- FIFO. order has group and offset of each open message, so that a group's messages follow each other. groups has each
-- group's next time: when its first message is visible, since when if it is (groups that are due together in the order
-- of those messages).
local function place(off, group) return group .. struct.pack('>I8', off) end
local function group_range(group) return '[' .. group .. string.rep('\0', 8), '[' .. group .. string.rep('\255', 8) end
-- Of what is due in the same ms the lower offset goes first: a time has room for 4,096 places within a ms.
local PLACES = 4096
local function in_turn(time, off) return time + off % PLACES / PLACES end
local function group_add(order, groups, off, group, time)
  redis.call('ZADD', order, 0, place(off, group))
  redis.call('ZADD', groups, 'NX', in_turn(time, off), group)
end
-- Sets a group's next time anew; true when it has a message that may be leased.
local function regroup(order, groups, delivery, group, now)
  local low, high = group_range(group)
  local member = redis.call('ZRANGEBYLEX', order, low, high, 'LIMIT', 0, 1)[1]
  if not member then
    redis.call('ZREM', groups, group)
    return false
  end
  local off = struct.unpack('>I8', member, 9)
  local time = delivery_read(delivery, off).time
  -- A group that is due again goes behind the groups that were due before it.
  redis.call('ZADD', groups, in_turn(math.max(time, now), off), group)
  return time <= now
end
-- Sets the next times of the groups (keys of the table) anew; true when one of them has a message that may be leased.
local function regroup_all(order, groups, delivery, touched, now)
  local free = false
  for group in pairs(touched) do free = regroup(order, groups, delivery, group, now) or free end
  return free
end
