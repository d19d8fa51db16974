-- purge: settles everything below an offset under every tag given: ready, delayed and leased, loaded or not.
-- KEYS 1 meta hash: generation, seq, bytes, c:<tag>
-- KEYS 2 body hash: offset -> header and record
-- KEYS 3 refs hash: offset -> holders
-- KEYS 4 outbox list: journal entries
-- KEYS + per tag: visible zset, ahead set, delayed zset, delivery hash
-- ARGV 1 generation
-- ARGV 2 now: ms, 0 = Redis' clock
-- ARGV 3 below: offset
-- ARGV + tag ids
-- OUT {status, how many were open in the window}
-- STATUS OK LOST
-- INV nothing at or above the offset changes
-- COST O(open x tags)
-- VERSION 1
-- INCLUDE clock journal delivery settle
local meta, body, refs, outbox = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
if redis.call('HGET', meta, 'generation') ~= ARGV[1] then return {'LOST'} end
local now, below = clock(ARGV[2]), tonumber(ARGV[3])
local count = 0
for i = 4, #ARGV do
  local k = 4 + (i - 4) * 4
  local visible, ahead, delayed, delivery = KEYS[k + 1], KEYS[k + 2], KEYS[k + 3], KEYS[k + 4]
  local cursor = tonumber(redis.call('HGET', meta, 'c:' .. ARGV[i]) or '-1')
  if cursor < 0 then return {'LOST'} end
  local shared = redis.call('EXISTS', refs) == 1
  for _, member in ipairs(redis.call('ZRANGE', visible, 0, -1)) do
    local off = tonumber(member)
    if off < below then
      settle(meta, visible, delivery, body, refs, off, shared)
      redis.call('ZREM', delayed, off)
      count = count + 1
    end
  end
  for _, member in ipairs(redis.call('SMEMBERS', ahead)) do
    if tonumber(member) < below then redis.call('SREM', ahead, member) end
  end
  if cursor < below then
    while redis.call('SREM', ahead, below) == 1 do below = below + 1 end
    redis.call('HSET', meta, 'c:' .. ARGV[i], below)
    below = tonumber(ARGV[3])
  end
  journal(meta, outbox, now, 'purged', tonumber(ARGV[i]), {below})
end
return {'OK', count}
