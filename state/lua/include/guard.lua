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
