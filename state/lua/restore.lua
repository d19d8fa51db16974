-- restore: a slice of what the journal says of one tag: cursor, offsets settled above it, open deliveries. Only while the unit does not serve.
-- KEYS 1 meta hash: epoch, c:<tag>
-- KEYS 2 ahead set: offsets at or above the cursor already taken
-- KEYS 3 delivery hash: offset -> delivery
-- KEYS 4 visible zset: offset by next visible ms
-- KEYS 5 delayed zset: offset by due ms
-- ARGV 1 epoch: of the rebuilder
-- ARGV 2 tag
-- ARGV 3 cursor
-- ARGV 4 settled_count
-- ARGV + settled offsets, then per delivery: offset, nonce, count, first ms, flag, time ms
-- OUT {status}
-- STATUS OK FENCED
-- INV only the owner's epoch may restore; an open delivery is taken (in ahead), without its body
-- COST O(slice)
-- VERSION 1
-- INCLUDE delivery
local meta, ahead, delivery, visible, delayed = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
if redis.call('HGET', meta, 'epoch') ~= ARGV[1] then return {'FENCED'} end
redis.call('HSET', meta, 'c:' .. ARGV[2], ARGV[3])
local n = tonumber(ARGV[4])
for a = 5, 4 + n do redis.call('SADD', ahead, ARGV[a]) end
for a = 5 + n, #ARGV, 6 do
  local off, time = ARGV[a], tonumber(ARGV[a + 5])
  local d = {nonce = tonumber(ARGV[a + 1]), count = tonumber(ARGV[a + 2]), first = tonumber(ARGV[a + 3]), flag = tonumber(ARGV[a + 4]), time = time}
  delivery_write(delivery, off, d)
  redis.call('SADD', ahead, off)
  redis.call('ZADD', visible, time, off)
  if d.nonce == 0 then redis.call('ZADD', delayed, time, off) end
end
return {'OK'}
