-- states: where messages stand under one tag. Changes nothing.
-- KEYS 1 meta hash: generation, shown, fifo, c:<tag>, n:<tag>, a:<tag>, w:<tag>, p:<tag>
-- KEYS 2 visible zset: offset by next visible ms
-- KEYS 3 delivery hash: offset -> delivery
-- KEYS 4 ahead set: offsets at or above the cursor already taken
-- KEYS 5 except hash: bitmaps of offsets that are deferred no longer
-- ARGV 1 generation
-- ARGV 2 now: ms, the time of the service; 0 = Redis' clock (tests)
-- ARGV 3 tag
-- ARGV + per message: offset, due ms if it is far and the tag wants it, else 0
-- OUT 1 status
-- OUT 2 messages: {state word, count, first ms, next visible ms (0 = not known), per offset}
-- STATUS OK LOST
-- INV reads only, but for a unit that has lost something: that stops serving
-- COST O(offsets)
-- VERSION 5
-- INCLUDE clock unit far
local meta, visible, delivery, ahead, except = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local unit, refused = guard(meta, ARGV[1], ARGV[3], visible, delivery)
if refused then return refused end
if not ahead_whole(unit, ahead) then return broken(meta) end
local now = unit_clock(unit, ARGV[2])
local out = {}
local mark = mark_of(meta, ARGV[3])
for a = 4, #ARGV, 2 do
  local off, due = tonumber(ARGV[a]), tonumber(ARGV[a + 1])
  local found = redis.call('ZSCORE', visible, off)
  -- Negative: set back.
  local score = math.abs(tonumber(found or '0'))
  local d = delivery_read(delivery, off) or {nonce = 0, count = 0, first = 0, flag = 0}
  local state = 'ready'
  if not found then
    state = (off < unit.cursor or redis.call('SISMEMBER', ahead, off) == 1) and 'settled' or 'stored'
    if state == 'settled' and due > 0 and is_deferred(mark, except, ARGV[3], due, off) then
      state, score = 'delayed', due
    end
  elseif d.flag == 4 then
    state, score = 'parked', 0
  elseif score > now then
    state = d.nonce ~= 0 and 'leased' or 'delayed'
  end
  for _, v in ipairs({state, d.count, d.first, score}) do out[#out + 1] = v end
end
return {'OK', out}
