-- give_back: ends deliveries that no answer carried: each is uncounted, and its message is receivable again at its
--   place in the line.
-- KEYS 1 meta hash: generation, seq, drained, fifo, c:<tag>, n:<tag>, g:<tag>, d:<tag>,
--   returned:<tag>, returned_again:<tag>
-- KEYS 2 visible zset: offset by next visible ms
-- KEYS 3 delivery hash: offset -> delivery
-- KEYS 4 outbox list: journal entries
-- KEYS 5 delayed zset: offset by due ms
-- KEYS 6 order zset: group and offset
-- KEYS 7 groups zset: groups, by next ms (FIFO) or by how many are in flight (fair)
-- ARGV 1 generation
-- ARGV 2 now: ms, the time of the service; 0 = Redis' clock (tests)
-- ARGV 3 tag
-- ARGV 4 rest_ms: after so long a message is receivable whose body could not be read
-- ARGV 5 channel: wake-ups go there
-- ARGV 6 partition: the payload of a wake-up
-- ARGV + per delivery: offset, nonce, due ms of the message (0 = its body could not be read)
-- OUT 1 status
-- OUT 2 words: {status word per delivery}
-- STATUS OK STALE LOST
-- INV a delivery is uncounted at most once; also when the outbox is full: what is leased is bounded, and nothing more
--   is leased then
-- COST O(deliveries log open)
-- VERSION 2
-- INCLUDE clock unit groups fair
local meta, visible, delivery, outbox, delayed = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local unit, refused = guard(meta, ARGV[1], ARGV[3], visible, delivery, KEYS[6], KEYS[7])
if refused then return refused end
local now, tag, rest_ms = clock(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local words, back, times, touched, late, again = {}, {}, {}, {}, false, 0
for a = 7, #ARGV, 3 do
  local off, due = tonumber(ARGV[a]), tonumber(ARGV[a + 2])
  local d = delivery_read(delivery, off)
  if d and d.nonce == tonumber(ARGV[a + 1]) and d.flag == 0 then
    if not unit.fifo then leave(KEYS[6], KEYS[7], off, d) end
    local time = due > 0 and math.min(due, now) or now + rest_ms
    if time > now then late = redis.call('ZADD', delayed, time, off) > 0 or late end
    if unit.fifo then touched[d.group] = math.min(touched[d.group] or time, time) end
    d.nonce, d.count, d.time = 0, d.count - 1, time
    if d.count == 0 then d.first = 0 else again = again + 1 end
    delivery_write(delivery, off, d)
    redis.call('ZADD', visible, time, off)
    back[#back + 1], times[#times + 1] = off, time
    words[#words + 1] = 'OK'
  else
    words[#words + 1] = 'STALE'
  end
end
if #back > 0 then
  journal(meta, outbox, now, 'returned', tag, back, times)
  total(meta, 'returned', ARGV[3], #back)
  if again > 0 then total(meta, 'returned_again', ARGV[3], again) end
  if late then seal_delayed(meta, ARGV[3], delayed) end
  -- A group keeps its place among the groups, too.
  for group, time in pairs(touched) do
    if regroup(KEYS[6], KEYS[7], delivery, group, now) and time < now then redis.call('ZADD', KEYS[7], time, group) end
  end
  if unit.fair then seal_groups(meta, ARGV[3], KEYS[6], KEYS[7]) end
  redis.call('PUBLISH', ARGV[5], ARGV[6])
end
return {'OK', words}
