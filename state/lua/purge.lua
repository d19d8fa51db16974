-- purge: settles everything below an offset under every tag given: ready, delayed and leased, loaded or not.
-- KEYS 1 meta hash: generation, seq, bytes, fifo, c:<tag>, n:<tag>, g:<tag>, a:<tag>, d:<tag>
-- KEYS 2 body hash: offset -> header and record
-- KEYS 3 refs hash: offset -> holders
-- KEYS 4 outbox list: journal entries
-- KEYS + per tag: visible zset, ahead set, delayed zset, delivery hash, order zset, groups zset
-- ARGV 1 generation
-- ARGV 2 now: ms, 0 = Redis' clock
-- ARGV 3 below: offset
-- ARGV + tag ids
-- OUT {status, how many were open in the window}
-- STATUS OK LOST
-- INV nothing at or above the offset changes
-- COST O(open x tags)
-- VERSION 2
-- INCLUDE clock journal delivery guard groups settle
local meta, body, refs, outbox = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local now, below = clock(ARGV[2]), tonumber(ARGV[3])
local units = {}
for i = 4, #ARGV do
  local k = 4 + (i - 4) * 6
  local unit, refused = guard(meta, ARGV[1], ARGV[i], KEYS[k + 1], KEYS[k + 4], KEYS[k + 5], KEYS[k + 6])
  if refused then return refused end
  units[i] = unit
end
local count = 0
for i = 4, #ARGV do
  local k, unit = 4 + (i - 4) * 6, units[i]
  local visible, ahead, delayed, delivery, order = KEYS[k + 1], KEYS[k + 2], KEYS[k + 3], KEYS[k + 4], KEYS[k + 5]
  local shared = redis.call('EXISTS', refs) == 1
  local touched = {}
  for _, member in ipairs(redis.call('ZRANGE', visible, 0, -1)) do
    local off = tonumber(member)
    if off < below then
      local d = unit.fifo and delivery_read(delivery, off)
      settle(meta, visible, delivery, body, refs, off, shared)
      if d then settle_ordered(order, off, d.group, touched) end
      redis.call('ZREM', delayed, off)
      count = count + 1
    end
  end
  for _, member in ipairs(redis.call('SMEMBERS', ahead)) do
    if tonumber(member) < below then redis.call('SREM', ahead, member) end
  end
  if unit.cursor < below then
    local cursor = below
    while redis.call('SREM', ahead, cursor) == 1 do cursor = cursor + 1 end
    redis.call('HSET', meta, 'c:' .. ARGV[i], cursor)
  end
  seal(meta, ARGV[i], visible, delivery)
  seal_ahead(meta, ARGV[i], ahead)
  seal_delayed(meta, ARGV[i], delayed)
  if unit.fifo then
    regroup_all(order, KEYS[k + 6], delivery, touched, now)
    seal_groups(meta, ARGV[i], order, KEYS[k + 6])
  end
  journal(meta, outbox, now, 'purged', tonumber(ARGV[i]), {below})
end
return {'OK', count}
