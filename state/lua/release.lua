-- release: gives leased messages back, receivable after a delay; their handles are over and their counts stay.
-- KEYS 1 meta hash: generation, seq, drained, fifo, c:<tag>, n:<tag>, g:<tag>, d:<tag>, released:<tag>
-- KEYS 2 visible zset: offset by next visible ms
-- KEYS 3 delivery hash: offset -> delivery
-- KEYS 4 outbox list: journal entries
-- KEYS 5 delayed zset: offset by due ms
-- KEYS 6 order zset: group and offset
-- KEYS 7 groups zset: groups, by next ms (FIFO) or by how many are in flight (fair)
-- KEYS 8 ahead set: offsets at or above the cursor already taken
-- ARGV 1 generation
-- ARGV 2 now: ms, the time of the service; 0 = Redis' clock (tests)
-- ARGV 3 tag
-- ARGV 4 late: 1 = a lapsed lease counts until the message is delivered again
-- ARGV 5 channel: wake-ups go there
-- ARGV 6 partition: the payload of a wake-up
-- ARGV 7 delay_ms
-- ARGV 8 width: how many values each handle has
-- ARGV + per handle: offset, nonce; with width 3 also the deadline of its delivery, 0 = any
-- OUT 1 status
-- OUT 2 handles: {status word, next visible ms or 0, per handle}
-- STATUS OK REASONS FULL LOST
-- INV a handle gives back its message at most once
-- COST O(handles log open)
-- VERSION 6
-- INCLUDE clock unit groups fair handle
local meta, visible, delivery, outbox, delayed = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local unit, refused = guard(meta, ARGV[1], ARGV[3], visible, delivery, KEYS[6], KEYS[7])
refused = refused or blocked(unit, meta, outbox)
if refused then return refused end
local now, tag, late, delay_ms = clock(ARGV[2]), tonumber(ARGV[3]), ARGV[4] == '1', tonumber(ARGV[7])
local time = now + delay_ms
local out, released, times, touched = {}, {}, {}, {}
local width, window = tonumber(ARGV[8]), {visible = visible, ahead = KEYS[8], cursor = unit.cursor}
for a = 9, #ARGV, width do
  local off = tonumber(ARGV[a])
  local d = delivery_read(delivery, off)
  local word = judge(window, off, d, ARGV[a + 1], width > 2 and ARGV[a + 2], now, late)
  if word == 'OK' then
    if unit.fifo then touched[d.group] = true else leave(KEYS[6], KEYS[7], off, d) end
    d.nonce, d.time = 0, time
    delivery_write(delivery, off, d)
    redis.call('ZADD', visible, time, off)
    if delay_ms > 0 then redis.call('ZADD', delayed, time, off) end
    released[#released + 1], times[#times + 1] = off, time
  end
  out[#out + 1], out[#out + 2] = word, word == 'OK' and time or 0
end
if #released > 0 then
  journal(meta, outbox, now, 'released', tag, released, times)
  total(meta, 'released', ARGV[3], #released)
  if delay_ms > 0 then seal_delayed(meta, ARGV[3], delayed) end
  if unit.fifo then regroup_all(KEYS[6], KEYS[7], delivery, touched, now) end
  if unit.fair then seal_groups(meta, ARGV[3], KEYS[6], KEYS[7]) end
  redis.call('PUBLISH', ARGV[5], ARGV[6])
end
return {'OK', out}
