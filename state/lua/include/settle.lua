-- Forgets what a tag holds of bodies: the last holder drops one. refs has an entry only while two or more tags hold a
-- body.
local function drop_bodies(meta, body, refs, offsets)
  if redis.call('EXISTS', body, refs) == 0 then return end
  local held, size, shared = {}, 0, redis.call('EXISTS', refs) == 1
  for _, off in ipairs(offsets) do
    local holders = shared and tonumber(redis.call('HGET', refs, off) or '0') or 0
    if holders > 2 then
      redis.call('HSET', refs, off, holders - 1)
    elseif holders == 2 then
      redis.call('HDEL', refs, off)
    else
      local length = redis.call('HSTRLEN', body, off)
      if length > 0 then held[#held + 1], size = off, size + length end
    end
  end
  if #held == 0 then return end
  redis.call('HDEL', body, unpack(held))
  redis.call('HINCRBY', meta, 'bytes', -size)
end
-- Removes open messages from a tag for good, each offset named once. The caller journals why, seals, and regroups the
-- groups it has touched.
local function settle(meta, visible, delivery, body, refs, offsets)
  for first = 1, #offsets, 1000 do
    local some = {unpack(offsets, first, math.min(first + 999, #offsets))}
    redis.call('ZREM', visible, unpack(some))
    redis.call('HDEL', delivery, unpack(some))
    drop_bodies(meta, body, refs, some)
  end
end
-- The same in a FIFO unit: `touched` collects the groups.
local function settle_ordered(order, off, group, touched)
  redis.call('ZREM', order, place(off, group))
  touched[group] = true
end
