-- Far: a message with a delay of FAR or more is deferred: the window passes it, and the wheel in Kafka gets a pointer
-- to it (docs/decisions/0021). A tag has a mark (due ms, offset): up to there, by due time and then by offset, what was
-- deferred was brought. So whether a message that the window has passed is still deferred follows from its due time,
-- unless it is excepted (cancelled or rescheduled meanwhile) or below the bound (purged, or before the tag's start).
-- far has s:<tag>:<slot>, how many are deferred in each slot; except has <tag>:<slot>:<chunk>, a bitmap of the offsets
-- of a chunk.
-- FAR: ms, as vocabulary.FAR_DELAY_MS.
local FAR = 300000
-- SLOT: ms, as vocabulary.SLOT_MS.
local SLOT = 3600000
-- POINTERS: that a unit may have which the wheel does not have, as vocabulary.POINTERS_LIMIT.
local POINTERS = 20000
local CHUNK = 1024
local function slot_of(due) return math.floor(due / SLOT) end
local function mark_of(meta, tag)
  local m = redis.call('HMGET', meta, 'w:' .. tag, 'p:' .. tag)
  local ms, off = string.match(m[1] or '0:-1', '^(%d+):(-?%d+)$')
  return {ms = tonumber(ms), off = tonumber(off), bound = tonumber(m[2] or '0')}
end
local function mark_text(ms, off) return string.format('%.0f:%.0f', ms, off) end
-- Whether a message is due after a mark.
local function after(mark, due, off) return due > mark.ms or due == mark.ms and off > mark.off end
local function except_field(tag, due, off) return tag .. ':' .. slot_of(due) .. ':' .. math.floor(off / CHUNK) end
local function excepted(except, tag, due, off)
  local low = off % CHUNK
  local byte = string.byte(redis.call('HGET', except, except_field(tag, due, off)) or '', math.floor(low / 8) + 1)
  return byte ~= nil and bit.band(byte, bit.lshift(1, low % 8)) ~= 0
end
local function set_excepted(except, tag, due, off)
  local field, at = except_field(tag, due, off), math.floor(off % CHUNK / 8)
  local map = redis.call('HGET', except, field) or ''
  map = map .. string.rep('\0', at + 1 - #map)
  local byte = bit.bor(string.byte(map, at + 1), bit.lshift(1, off % 8))
  redis.call('HSET', except, field, string.sub(map, 1, at) .. string.char(byte) .. string.sub(map, at + 2))
end
local function is_deferred(mark, except, tag, due, off)
  return off >= mark.bound and after(mark, due, off) and not excepted(except, tag, due, off)
end
-- So many more (`by` may be negative) are deferred in the slots of these due times.
local function count_deferred(meta, far, tag, dues, by)
  if #dues == 0 then return end
  local slots = {}
  for _, due in ipairs(dues) do slots[slot_of(due)] = (slots[slot_of(due)] or 0) + by end
  for slot, n in pairs(slots) do
    local field = 's:' .. tag .. ':' .. slot
    if redis.call('HINCRBY', far, field, n) == 0 then redis.call('HDEL', far, field) end
  end
  redis.call('HINCRBY', meta, 't:' .. tag, #dues * by)
end
-- Defers messages under a tag that has just taken them.
local function defer(meta, far, pointers, outbox, now, tag, offsets, dues)
  local low = tonumber(redis.call('HGET', meta, 'unfiled') or math.huge)
  for first = 1, #offsets, 1000 do
    local row = {}
    for i = first, math.min(first + 999, #offsets) do
      row[#row + 1], row[#row + 2], low = dues[i], offsets[i], math.min(low, offsets[i])
    end
    redis.call('ZADD', pointers, unpack(row))
  end
  redis.call('HSET', meta, 'unfiled', low)
  count_deferred(meta, far, tag, dues, 1)
  journal(meta, outbox, now, 'deferred', tonumber(tag), offsets, dues)
end
-- Whether what is kept of deferred messages has as many members as the last script left there.
local function far_whole(meta, far, except, pointers)
  local sealed = redis.call('HGET', meta, 'far') or '0:0:0'
  return sealed == redis.call('HLEN', far) .. ':' .. redis.call('HLEN', except) .. ':' .. redis.call('ZCARD', pointers)
end
local function seal_far(meta, far, except, pointers)
  local slots, excepted = redis.call('HLEN', far), redis.call('HLEN', except)
  redis.call('HSET', meta, 'far', slots .. ':' .. excepted .. ':' .. redis.call('ZCARD', pointers))
end
