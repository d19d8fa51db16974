-- kill: marks leased messages as dying, so that the caller can move them to the dead-letter queue; nobody receives them
--   meanwhile.
-- KEYS 1 meta hash: generation, seq, drained, fifo, c:<tag>, n:<tag>, g:<tag>
-- KEYS 2 visible zset: offset by next visible ms
-- KEYS 3 delivery hash: offset -> delivery
-- KEYS 4 body hash: offset -> header and record
-- KEYS 5 outbox list: journal entries
-- KEYS 6 order zset: group and offset
-- KEYS 7 groups zset: groups, by next ms (FIFO) or by how many are in flight (fair)
-- KEYS 8 ahead set: offsets at or above the cursor already taken
-- ARGV 1 generation
-- ARGV 2 now: ms, the time of the service; 0 = Redis' clock (tests)
-- ARGV 3 tag
-- ARGV 4 late: 1 = a lapsed lease counts until the message is delivered again
-- ARGV 5 move_ms: how long a dying message waits for its mover
-- ARGV 6 width: how many values each handle has
-- ARGV + per handle: offset, nonce; with width 3 also the deadline of its delivery, 0 = any
-- OUT 1 status
-- OUT 2 handles: {status word, offset, count, first ms, nonce, body, per handle}
-- STATUS OK REASONS FULL LOST
-- INV a dying message is given to one mover at a time
-- COST O(handles log open)
-- VERSION 5
-- INCLUDE clock unit groups fair handle
local meta, visible, delivery, body, outbox = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local unit, refused = guard(meta, ARGV[1], ARGV[3], visible, delivery, KEYS[6], KEYS[7])
refused = refused or blocked(unit, meta, outbox)
if refused then return refused end
local now, tag, late, move_ms = clock(ARGV[2]), tonumber(ARGV[3]), ARGV[4] == '1', tonumber(ARGV[5])
local out, touched = {}, {}
local width, window = tonumber(ARGV[6]), {visible = visible, ahead = KEYS[8], cursor = unit.cursor}
for a = 7, #ARGV, width do
  local off = tonumber(ARGV[a])
  local d = delivery_read(delivery, off)
  local row = {judge(window, off, d, ARGV[a + 1], width > 2 and ARGV[a + 2], now, late), off, 0, 0, 0, ''}
  if row[1] == 'OK' then
    if unit.fifo then touched[d.group] = true else leave(KEYS[6], KEYS[7], off, d) end
    d.flag, d.time = 1, now + move_ms
    d.nonce = journal(meta, outbox, now, 'dying', tag, {off}, {d.time}, 'killed')
    delivery_write(delivery, off, d)
    redis.call('ZADD', visible, d.time, off)
    row = {'OK', off, d.count, d.first, d.nonce, redis.call('HGET', body, off) or ''}
  end
  for _, v in ipairs(row) do out[#out + 1] = v end
end
if unit.fifo then regroup_all(KEYS[6], KEYS[7], delivery, touched, now) end
if unit.fair then seal_groups(meta, ARGV[3], KEYS[6], KEYS[7]) end
return {'OK', out}
