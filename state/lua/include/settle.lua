-- Forgets what a tag holds of one body: the last holder drops it. refs has an entry only while two or more tags hold a body.
local function drop_body(meta, body, refs, off, shared)
  if shared then
    local holders = tonumber(redis.call('HGET', refs, off) or '0')
    if holders > 2 then redis.call('HSET', refs, off, holders - 1) return end
    if holders == 2 then redis.call('HDEL', refs, off) return end
  end
  local size = redis.call('HSTRLEN', body, off)
  if size > 0 then
    redis.call('HDEL', body, off)
    redis.call('HINCRBY', meta, 'bytes', -size)
  end
end
-- Removes an open message from a tag for good. The caller journals why, seals, and regroups the groups it has touched.
local function settle(meta, visible, delivery, body, refs, off, shared)
  redis.call('ZREM', visible, off)
  redis.call('HDEL', delivery, off)
  drop_body(meta, body, refs, off, shared)
end
-- The same in a FIFO unit: `touched` collects the groups.
local function settle_ordered(order, off, group, touched)
  redis.call('ZREM', order, place(off, group))
  touched[group] = true
end
