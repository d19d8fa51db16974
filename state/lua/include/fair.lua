-- Fair: in a standard unit the messages of a group that has more than a tenth of what is in flight go behind all others
-- that are due. groups has each group of which something is in flight (leased, or lapsed and not met since) or set
-- back, by how many are in flight, plus APART while nothing of it is set back; and TOTAL, by how many are in flight in
-- all, plus 2 * APART. It stays, so a unit that ever had a group is known by its seal. order has group and offset of
-- what is set back; its score in visible is negative. Messages without a group are in neither.
local APART, TOTAL = 1e9, 'total'
local function noisy(groups, group)
  local own = tonumber(redis.call('ZSCORE', groups, group) or '0') % APART
  return own * 10 > tonumber(redis.call('ZSCORE', groups, TOTAL) or '0') % APART
end
-- The groups that are noisy: nine at most, for each has more than a tenth.
local function noisy_ones(groups)
  local share = math.floor(tonumber(redis.call('ZSCORE', groups, TOTAL) or '0') % APART / 10)
  local found = redis.call('ZRANGEBYSCORE', groups, '(' .. share, '(' .. APART)
  for _, group in ipairs(redis.call('ZRANGEBYSCORE', groups, '(' .. APART + share, '(' .. 2 * APART)) do
    found[#found + 1] = group
  end
  return found
end
-- How many groups have something in flight, those of which some is set back too.
local function groups_in_flight(groups)
  return redis.call('ZCOUNT', groups, '(0', '(' .. APART) + redis.call('ZCOUNT', groups, '(' .. APART, '(' .. 2 * APART)
end
local function in_flight(groups, group, by)
  redis.call('ZADD', groups, 'NX', APART, group)
  if tonumber(redis.call('ZINCRBY', groups, by, group)) == APART then redis.call('ZREM', groups, group) end
  redis.call('ZINCRBY', groups, by, TOTAL)
end
local function set_back(visible, order, groups, off, group, time)
  redis.call('ZADD', visible, -time, off)
  redis.call('ZADD', order, 0, place(off, group))
  redis.call('ZADD', groups, 'NX', APART, group)
  if tonumber(redis.call('ZSCORE', groups, group)) >= APART then redis.call('ZINCRBY', groups, -APART, group) end
end
-- A message is set back no longer; the caller sets its score in visible.
local function take_back(order, groups, off, group)
  if redis.call('ZREM', order, place(off, group)) == 0 then return end
  local low, high = group_range(group)
  if #redis.call('ZRANGEBYLEX', order, low, high, 'LIMIT', 0, 1) > 0 then return end
  if tonumber(redis.call('ZINCRBY', groups, APART, group)) == APART then redis.call('ZREM', groups, group) end
end
-- Of a new message with a group.
local function join(visible, order, groups, entry, now)
  redis.call('ZADD', groups, 'NX', 2 * APART, TOTAL)
  if entry.due <= now and noisy(groups, entry.group) then
    set_back(visible, order, groups, entry.off, entry.group, entry.due)
  end
end
-- Of a message that is settled, given back, held, dying or leased anew; `d` is its delivery before that.
local function leave(order, groups, off, d)
  if not d or not d.group or d.group == '' then return end
  take_back(order, groups, off, d.group)
  if d.nonce ~= 0 and d.flag == 0 then in_flight(groups, d.group, -1) end
end
-- The first message that is set back of the group with the fewest in flight, and that group; or nil.
local function first_back(order, groups)
  local group = redis.call('ZRANGEBYSCORE', groups, '-inf', '(' .. APART, 'LIMIT', 0, 1)[1]
  if not group then return nil end
  local low, high = group_range(group)
  local member = redis.call('ZRANGEBYLEX', order, low, high, 'LIMIT', 0, 1)[1]
  if member then return struct.unpack('>I8', member, 9), group end
end
