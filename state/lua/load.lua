-- load: the only way into the window. Takes records of one partition for some tags, each offset at most once per tag.
-- KEYS 1 meta hash: generation, epoch, seq, bytes, c:<tag> cursors
-- KEYS 2 body hash: offset -> header and record
-- KEYS 3 refs hash: offset -> how many tags hold the body, when two or more
-- KEYS 4 outbox list: journal entries
-- KEYS 5 origins zset: move key, score is the offset of its first copy
-- KEYS + per tag: visible zset (offset by next visible ms), ahead set (offsets at or above the cursor already taken), delayed zset (offset by due ms)
-- ARGV 1 generation
-- ARGV 2 epoch: of the loader, 0 = write-through
-- ARGV 3 now: ms, 0 = Redis' clock
-- ARGV 4 channel: wake-ups go there
-- ARGV 5 partition: the payload of a wake-up
-- ARGV 6 window_messages: bodies
-- ARGV 7 window_bytes: bytes of bodies
-- ARGV 8 max_open: messages a tag may have open
-- ARGV 9 near_ms: a message due later than this is kept without its body
-- ARGV 10 scan_from: offset from which the entries are all there is, -1 = single records
-- ARGV 11 scan_next: offset up to which that holds
-- ARGV 12 tag_count
-- ARGV + tag ids, then per entry: offset, header and record ('' = skipped), mask (one 0 or 1 per tag), move key or '', skip reason or ''
-- OUT {status, {cursor per tag}, {1 per tag whose window is full}, taken}
-- STATUS OK FENCED LOST
-- INV an offset below the cursor or in ahead is never taken again; a cursor never passes a record it did not take
-- COST O(entries x tags)
-- VERSION 1
-- INCLUDE clock journal
local meta, body, refs, outbox, origins = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
if redis.call('HGET', meta, 'generation') ~= ARGV[1] then return {'LOST'} end
if ARGV[2] ~= '0' and redis.call('HGET', meta, 'epoch') ~= ARGV[2] then return {'FENCED'} end
local now, channel, partition = clock(ARGV[3]), ARGV[4], ARGV[5]
local window_messages, window_bytes = tonumber(ARGV[6]), tonumber(ARGV[7])
local max_open, near_ms = tonumber(ARGV[8]), tonumber(ARGV[9])
local scan_from, scan_next, tag_count = tonumber(ARGV[10]), tonumber(ARGV[11]), tonumber(ARGV[12])
local bytes = tonumber(redis.call('HGET', meta, 'bytes') or '0')
local bodies = redis.call('HLEN', body)
local share = math.floor(window_messages / 8)
local EARLY = 1000
local tags = {}
for i = 1, tag_count do
  local k = 5 + (i - 1) * 3
  local tag = {id = ARGV[12 + i], visible = KEYS[k + 1], ahead = KEYS[k + 2], delayed = KEYS[k + 3]}
  tag.cursor = tonumber(redis.call('HGET', meta, 'c:' .. tag.id) or '-1')
  if tag.cursor < 0 then return {'LOST'} end
  tag.first = tag.cursor
  tag.ahead_count = redis.call('SCARD', tag.ahead)
  tag.open = redis.call('ZCARD', tag.visible)
  tags[i] = tag
end
local function pass_ahead(tag)
  while tag.ahead_count > 0 and redis.call('SREM', tag.ahead, tag.cursor) == 1 do
    tag.ahead_count = tag.ahead_count - 1
    tag.cursor = tag.cursor + 1
  end
end
local function fits(tag, entry)
  if tag.open >= max_open then return false end
  if entry.due - now >= near_ms or entry.held or tag.open < share then return true end
  return bodies < window_messages and bytes + entry.size <= window_bytes
end
local function hold_body(entry)
  if entry.due - now >= near_ms then return end
  if entry.held == nil then
    entry.held = redis.call('HSETNX', body, entry.off, entry.packed) == 0
    if entry.held then
      local holders = tonumber(redis.call('HGET', refs, entry.off) or '1')
      redis.call('HSET', refs, entry.off, holders + 1)
    else
      bodies = bodies + 1
      bytes = bytes + entry.size
      redis.call('HINCRBY', meta, 'bytes', entry.size)
      entry.held = true
    end
    return
  end
  local holders = tonumber(redis.call('HGET', refs, entry.off) or '1')
  redis.call('HSET', refs, entry.off, holders + 1)
end
local taken = 0
local function insert(tag, entry)
  redis.call('ZADD', tag.visible, entry.due, entry.off)
  if entry.due > now then redis.call('ZADD', tag.delayed, entry.due, entry.off) end
  hold_body(entry)
  tag.open = tag.open + 1
  taken = taken + 1
end
local function skip(tag, entry)
  if entry.reason ~= '' then journal(meta, outbox, now, 'skipped', tonumber(tag.id), {entry.off}, nil, entry.reason) end
end
-- One record for one tag: in order (moves the cursor) or early (remembered in ahead).
local function take(tag, entry, wanted)
  if entry.off < tag.cursor or tag.full then return end
  local in_order = entry.off == tag.cursor or (scan_from >= 0 and tag.cursor >= scan_from)
  if in_order then
    tag.cursor = entry.off
    if tag.ahead_count > 0 and redis.call('SREM', tag.ahead, entry.off) == 1 then
      tag.ahead_count = tag.ahead_count - 1
    elseif not wanted then
      skip(tag, entry)
    elseif fits(tag, entry) then
      insert(tag, entry)
    else
      tag.full = true
      return
    end
    tag.cursor = entry.off + 1
    pass_ahead(tag)
  elseif entry.off - tag.cursor <= EARLY and (not wanted or fits(tag, entry)) then
    if redis.call('SADD', tag.ahead, entry.off) == 1 then
      tag.ahead_count = tag.ahead_count + 1
      if wanted then insert(tag, entry) else skip(tag, entry) end
    end
  end
end
for a = 12 + tag_count + 1, #ARGV, 5 do
  local entry = {off = tonumber(ARGV[a]), packed = ARGV[a + 1], reason = ARGV[a + 4]}
  local mask, move_key = ARGV[a + 2], ARGV[a + 3]
  entry.size = #entry.packed
  if entry.size > 0 then
    local _, due = struct.unpack('>I8I8', entry.packed)
    entry.due = due
  end
  if move_key ~= '' then
    local first = tonumber(redis.call('ZSCORE', origins, move_key) or '-1')
    if first >= 0 and first ~= entry.off then
      entry.reason, entry.size = 'duplicate_move', 0
    elseif first < 0 then
      redis.call('ZADD', origins, entry.off, move_key)
      redis.call('ZREMRANGEBYRANK', origins, 0, -20001)
    end
  end
  for i = 1, tag_count do
    take(tags[i], entry, entry.size > 0 and string.sub(mask, i, i) == '1')
  end
end
local cursors, full = {}, {}
for i = 1, tag_count do
  local tag = tags[i]
  if scan_from >= 0 and tag.cursor >= scan_from and not tag.full and scan_next > tag.cursor then
    tag.cursor = scan_next
    pass_ahead(tag)
  end
  if tag.cursor ~= tag.first then redis.call('HSET', meta, 'c:' .. tag.id, tag.cursor) end
  cursors[i], full[i] = tag.cursor, tag.full and 1 or 0
end
if taken > 0 then redis.call('PUBLISH', channel, partition) end
return {'OK', cursors, full, taken}
