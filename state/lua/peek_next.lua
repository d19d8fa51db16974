-- peek_next: tells which messages a receive would lease next, in its order; what it would expire or move instead is
--   left out.
-- KEYS 1 meta hash: generation, shown, fifo, c:<tag>, n:<tag>, g:<tag>
-- KEYS 2 visible zset: offset by next visible ms; a negative time = set back
-- KEYS 3 delivery hash: offset -> delivery
-- KEYS 4 body hash: offset -> header (sent ms, due ms, lease ms or -1) and record
-- KEYS 5 order zset: group and offset
-- KEYS 6 groups zset: groups, by next ms (FIFO) or by how many are in flight (fair)
-- ARGV 1 generation
-- ARGV 2 now: ms, the time of the service; 0 = Redis' clock (tests)
-- ARGV 3 tag
-- ARGV 4 max: 1-100
-- ARGV 5 max_receive_count: 0 = no dead-letter queue
-- ARGV 6 retention_ms
-- ARGV 7 per_group: messages of a group that may be leased at once, 0 = as many as there are; FIFO only
-- OUT 1 status
-- OUT 2 messages: {offset, count, first ms, since when it is visible (ms), 1 = it goes behind quiet groups else 0, per
--   message}
-- STATUS OK LOST
-- INV reads only, but for a unit that has lost something: that stops serving
-- COST O(max log open); it looks at 50 messages more than are wanted, so of a head that has expired it may show less
--   than there is
-- VERSION 2
-- INCLUDE clock unit groups fair head
local visible, delivery, body, order, groups = KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6]
local unit, refused = guard(KEYS[1], ARGV[1], ARGV[3], visible, delivery, order, groups)
if refused then return refused end
local now, max, most_receives, retention_ms =
  unit_clock(unit, ARGV[2]), tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6])
local out, found, MORE = {}, 0, 50
-- Adds a due message if it would be leased; false = it would die, and what is behind it in its group waits.
local function add(off, d, later)
  d = d or {nonce = 0, count = 0, first = 0, flag = 0, time = 0}
  local dead = d.flag == 1 or d.flag == 2 or d.count >= most_receives
  if most_receives > 0 and dead then return false end
  local since = math.abs(tonumber(redis.call('ZSCORE', visible, off)))
  local packed = redis.call('HGET', body, off)
  if due_of(visible, off, d, packed or nil, true) + retention_ms > now then
    found = found + 1
    for _, v in ipairs({off, d.count, d.first, since, later or 0}) do out[#out + 1] = v end
  end
  return true
end
-- Fair: what is due of quiet groups, then of noisy ones, whether somebody has met it and set it back or not; by time.
local later_of = {}
local function quiet_first()
  local due = redis.call('ZRANGEBYSCORE', visible, 0, now, 'WITHSCORES', 'LIMIT', 0, max + MORE)
  local back = redis.call('ZREVRANGEBYSCORE', visible, '(0', '-inf', 'WITHSCORES', 'LIMIT', 0, max + MORE)
  local rows, first = {}, {}
  for _, found in ipairs({due, back}) do
    for i = 1, #found, 2 do
      local d, time = delivery_read(delivery, found[i]), tonumber(found[i + 1])
      local later = time < 0 or d and d.group ~= '' and noisy(groups, d.group)
      rows[#rows + 1] = {later and 1 or 0, math.abs(time), tonumber(found[i])}
    end
  end
  table.sort(rows, function(a, b)
    if a[1] ~= b[1] then return a[1] < b[1] end
    return a[2] < b[2] or a[2] == b[2] and a[3] < b[3]
  end)
  for i, row in ipairs(rows) do first[i], later_of[row[3]] = row[3], row[1] end
  return first
end
if unit.fifo then
  for _, group in ipairs(redis.call('ZRANGEBYSCORE', groups, '-inf', '(' .. now + 1, 'LIMIT', 0, max + MORE)) do
    local low, high = group_range(group)
    local before = found
    for _, member in ipairs(redis.call('ZRANGEBYLEX', order, low, high, 'LIMIT', 0, max + MORE)) do
      local off = struct.unpack('>I8', member, 9)
      local d = delivery_read(delivery, off)
      if not d or d.time > now or found >= max or ARGV[7] ~= '0' and found - before >= tonumber(ARGV[7]) then break end
      if not add(off, d) then break end
    end
  end
else
  for _, member in ipairs(unit.fair and quiet_first() or oldest(visible, now, max + MORE)) do
    local off = tonumber(member)
    if found < max then add(off, delivery_read(delivery, off), later_of[off]) end
  end
end
return {'OK', out}
