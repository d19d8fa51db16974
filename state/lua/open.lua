-- open: makes a unit serve: sets its generation, and the cursor of each tag it does not have yet. Idempotent.
-- KEYS 1 meta hash: all but owner, owner_until, owner_ms and x:<tag>
-- KEYS 2 dedup hash: id -> when (ms) and offset, FIFO only
-- KEYS 3 ids list: ids of dedup by age, FIFO only
-- ARGV 1 generation
-- ARGV 2 epoch: of the rebuilder, 0 = a new queue or tag (refused if the unit is of another generation)
-- ARGV 3 seq: at least this is used up: the entries of this life have higher ones
-- ARGV 4 fifo: 1 or 0
-- ARGV 5 serving: 1 = a tag more for a unit that serves, 2 = one that its loader has not known, 0 = a unit may have
--   nothing yet
-- ARGV + per tag: id, first offset
-- OUT 1 status
-- STATUS OK FENCED LOST
-- INV a cursor that is there is never changed
-- COST O(tags)
-- VERSION 4
local meta = KEYS[1]
local generation = redis.call('HGET', meta, 'generation')
if ARGV[2] == '0' then
  if generation and generation ~= ARGV[1] then return {'LOST'} end
  -- A unit that has just lost everything must not begin anew as if nothing had ever been settled.
  if ARGV[5] ~= '0' and not generation then return {'LOST'} end
elseif redis.call('HGET', meta, 'epoch') ~= ARGV[2] then
  return {'FENCED'}
end
for _, field in ipairs({'seq', 'drained', 'bytes', 'origins', 'dedups'}) do redis.call('HSETNX', meta, field, 0) end
if tonumber(ARGV[3]) > tonumber(redis.call('HGET', meta, 'seq')) then
  redis.call('HSET', meta, 'seq', ARGV[3], 'drained', ARGV[3], 'base', ARGV[3])
end
local seen = tonumber(redis.call('HGET', meta, 'seen') or '-1')
local fresh = not redis.call('HGET', meta, 'fifo') and ARGV[2] == '0'
local first = nil
for a = 6, #ARGV, 2 do
  local tag, offset = ARGV[a], tonumber(ARGV[a + 1])
  if ARGV[5] == '2' then
    -- One that was closed meanwhile stays so.
    local cursor = tonumber(redis.call('HGET', meta, 'c:' .. tag) or '')
    if cursor then first = math.min(first or cursor, cursor) end
  elseif redis.call('HSETNX', meta, 'c:' .. tag, offset) == 1 then
    redis.call('HSET', meta, 'n:' .. tag, '0:0', 'g:' .. tag, '0:0', 'a:' .. tag, 0, 'd:' .. tag, 0)
    first = math.min(first or offset, offset)
  end
  if ARGV[5] ~= '2' then
    redis.call('HSETNX', meta, 'p:' .. tag, offset)
    redis.call('HSETNX', meta, 'f:' .. tag, offset)
  end
end
if ARGV[4] == '1' then
  redis.call('HSET', meta, 'fifo', 1)
  if fresh and first == 0 then
    redis.call('HSETNX', meta, 'seen', 0)
  elseif first and first < seen then
    -- A tag that begins earlier: which messages repeat others is found out again, from before its beginning.
    redis.call('HDEL', meta, 'seen')
    redis.call('DEL', KEYS[2], KEYS[3])
    redis.call('HSET', meta, 'dedups', 0)
  end
end
redis.call('HSET', meta, 'generation', ARGV[1])
return {'OK'}
