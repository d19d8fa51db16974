-- extend: moves the deadlines of leases, counted from now; 0 makes a message receivable at once and leaves its handle
--   good until then.
-- KEYS 1 meta hash: generation, seq, drained, fifo, c:<tag>, n:<tag>, g:<tag>
-- KEYS 2 visible zset: offset by next visible ms
-- KEYS 3 delivery hash: offset -> delivery
-- KEYS 4 outbox list: journal entries
-- KEYS 5 order zset: group and offset
-- KEYS 6 groups zset: groups, by next ms (FIFO) or by how many are in flight (fair)
-- KEYS 7 ahead set: offsets at or above the cursor already taken
-- ARGV 1 generation
-- ARGV 2 now: ms, the time of the service; 0 = Redis' clock (tests)
-- ARGV 3 tag
-- ARGV 4 late: 1 = a lapsed lease counts until the message is delivered again
-- ARGV 5 channel: wake-ups go there
-- ARGV 6 partition: the payload of a wake-up
-- ARGV 7 width: how many values each handle has
-- ARGV + per handle: offset, nonce, lease ms; with width 4 also the deadline of its delivery, 0 = any
-- OUT 1 status
-- OUT 2 handles: {status word, new deadline ms or 0, per handle}
-- STATUS OK REASONS FULL LOST
-- INV only the latest delivery of a message can be extended; counts do not change
-- COST O(handles log open)
-- VERSION 5
-- INCLUDE clock unit groups fair handle
local meta, visible, delivery, outbox = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local unit, refused = guard(meta, ARGV[1], ARGV[3], visible, delivery, KEYS[5], KEYS[6])
refused = refused or blocked(unit, meta, outbox)
if refused then return refused end
local now, tag, late = clock(ARGV[2]), tonumber(ARGV[3]), ARGV[4] == '1'
local out, extended, times, touched, sooner = {}, {}, {}, {}, false
local width, window = tonumber(ARGV[7]), {visible = visible, ahead = KEYS[7], cursor = unit.cursor}
for a = 8, #ARGV, width do
  local off = tonumber(ARGV[a])
  local d = delivery_read(delivery, off)
  local word, time = judge(window, off, d, ARGV[a + 1], width > 3 and ARGV[a + 3], now, late), 0
  if word == 'OK' then
    time = now + tonumber(ARGV[a + 2])
    sooner = sooner or time < d.time
    d.time = time
    delivery_write(delivery, off, d)
    redis.call('ZADD', visible, time, off)
    if unit.fifo then touched[d.group] = true elseif d.group ~= '' then take_back(KEYS[5], KEYS[6], off, d.group) end
    extended[#extended + 1], times[#times + 1] = off, time
  end
  out[#out + 1], out[#out + 2] = word, time
end
if #extended > 0 then journal(meta, outbox, now, 'extended', tag, extended, times) end
if unit.fifo then regroup_all(KEYS[5], KEYS[6], delivery, touched, now) end
if unit.fair then seal_groups(meta, ARGV[3], KEYS[5], KEYS[6]) end
if sooner then redis.call('PUBLISH', ARGV[5], ARGV[6]) end
return {'OK', out}
