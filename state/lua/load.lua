-- load: takes records of a partition into the window, each offset at most once per tag; FIFO: in order, repeated ones
--   never.
-- KEYS 1 meta hash: generation, epoch, seq, bytes, origins, fifo, seen, unsure, dedups, far, unfiled, c:<tag>, n:<tag>
--   and all others
-- KEYS 2 body hash: offset -> header and record
-- KEYS 3 refs hash: offset -> how many tags hold the body, when two or more
-- KEYS 4 outbox list: journal entries
-- KEYS 5 origins zset: move key, score is the offset of its first copy
-- KEYS 6 dedup hash: id -> when (ms) and offset, FIFO only
-- KEYS 7 ids list: ids of dedup by age, FIFO only
-- KEYS 8 pending hash: offset -> record that came before the one it follows, FIFO only
-- KEYS 9 far hash: how many are deferred, by tag and slot
-- KEYS 10 except hash: bitmaps of offsets that are deferred no longer
-- KEYS 11 pointers zset: offset by due ms, of what is deferred and not in the wheel yet
-- KEYS + per tag: visible zset, ahead set, delayed zset, delivery hash, order zset, groups zset
-- ARGV 1 generation
-- ARGV 2 epoch: of the loader, 0 = write-through
-- ARGV 3 now: ms, the time of the service; 0 = Redis' clock (tests)
-- ARGV 4 channel: wake-ups go there; '' = nobody else listens
-- ARGV 5 payload: of a wake-up, the partition and who loads; the script adds `head`
-- ARGV 6 window_messages: bodies
-- ARGV 7 window_bytes: bytes of bodies
-- ARGV 8 max_open: messages a tag may have open, with bodies or without, beside those that are leased
-- ARGV 9 near_ms: a message due later than this is kept without its body
-- ARGV 10 scan_from: offset from which the entries are all there is, -1 = single records
-- ARGV 11 scan_next: offset up to which that holds
-- ARGV 12 sure_at: ms, -1 = the order is known; FIFO: it is found again, and an id that is met before this time may be
--   a repeat
-- ARGV 13 sure_from: offset from which none is, whatever was before
-- ARGV 14 tag_count
-- ARGV 15 early_ms: how far the time of the service is ahead of the log's, less than 0: behind it; a delay is over so
--   much later
-- ARGV + tag ids, then per entry: offset, header and record, mask, move key or '', skip reason or '', group, dedup id
--   or '', count
-- ARGV + header and record: '' = skipped; a header alone is kept without a body
-- ARGV + mask: one 0 or 1 per tag; group: 8 bytes or ''
-- ARGV + count: more than 1 = so many from offset on, header alone, not FIFO
-- OUT 1 status
-- OUT 2 cursors: {cursor per tag}
-- OUT 3 full: {1 = the window is full, else 0, per tag}
-- OUT 4 taken: how many, all tags together, what is deferred too
-- OUT 5 seen: -1 = not known
-- OUT 6 repeats: {offset, offset of the message that it repeats ...}
-- OUT 7 head: when the first of what it took is visible (ms), no later than now but for a delay; 0 = none is
-- STATUS OK FENCED LOST
-- INV an offset below the cursor or in ahead is never taken again; a cursor never passes a record it did not take
-- COST O(entries x tags)
-- VERSION 9
-- PLAIN plain/load.lua
-- INCLUDE clock unit groups fair head dedup turn origins far
local meta, body, refs, outbox, origins, dedup, ids, pending =
  KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6], KEYS[7], KEYS[8]
local far, except, pointers = KEYS[9], KEYS[10], KEYS[11]
if ARGV[2] ~= '0' and redis.call('HGET', meta, 'epoch') ~= ARGV[2] then return {'FENCED'} end
local now, channel, payload = clock(ARGV[3]), ARGV[4], ARGV[5]
local window_messages, window_bytes, max_open, near_ms =
  tonumber(ARGV[6]), tonumber(ARGV[7]), tonumber(ARGV[8]), tonumber(ARGV[9])
local scan_from, scan_next, tag_count, early_ms =
  tonumber(ARGV[10]), tonumber(ARGV[11]), tonumber(ARGV[14]), tonumber(ARGV[15])
local m = redis.call('HMGET', meta, 'generation', 'bytes', 'seen', 'fifo', 'dedups', 'origins', 'unsure')
if m[1] ~= ARGV[1] then return {'LOST'} end
if not m[2] or m[6] ~= tostring(redis.call('ZCARD', origins)) then return broken(meta) end
if m[4] and m[5] ~= tostring(redis.call('HLEN', dedup)) then return broken(meta) end
local bodies = redis.call('HLEN', body)
local bytes = bodies == 0 and 0 or tonumber(m[2])
if bodies == 0 and m[2] ~= '0' then redis.call('HSET', meta, 'bytes', 0) end
local fifo = m[4] == '1'
local f = {
  seen = tonumber(m[3] or '-1'), dedup = dedup, ids = ids, pending = pending, scan_from = scan_from, repeats = {},
  tags = table.concat(ARGV, ',', 16, 15 + tag_count),
}
local share = math.floor(window_messages / 8)
-- EARLY: how far beyond the cursor a record is taken before its turn, as vocabulary.EARLY_OFFSETS.
-- HEADER: bytes of the header, as packed.HEADER_BYTES.
local EARLY, HEADER = 10000, 24
local tags = {}
for i = 1, tag_count do
  local k, id = 11 + (i - 1) * 6, ARGV[15 + i]
  local unit, refused = guard(meta, ARGV[1], id, KEYS[k + 1], KEYS[k + 4], KEYS[k + 5], KEYS[k + 6])
  if refused then return refused end
  if not ahead_whole(unit, KEYS[k + 2]) then return broken(meta) end
  local tag = {id = id, visible = KEYS[k + 1], ahead = KEYS[k + 2], delayed = KEYS[k + 3]}
  tag.delivery, tag.order, tag.groups = KEYS[k + 4], KEYS[k + 5], KEYS[k + 6]
  tag.cursor, tag.first = unit.cursor, unit.cursor
  tag.ahead_count = redis.call('SCARD', tag.ahead)
  tag.ahead_first, tag.delays = tag.ahead_count, 0
  local open = redis.call('ZCARD', tag.visible)
  -- What is leased does not count: it needs no body, and somebody has it already.
  tag.open = open - leased_of(tag.visible, tag.delayed, open, now)
  tag.open_first, tag.unit, tag.row = tag.open, unit, {}
  tags[i] = tag
end
local taken, added, shown, cursors, full, head = 0, 0, tags[1] and tags[1].unit.shown or 0, {}, {}, nil
local function pass_ahead(tag)
  while tag.ahead_count > 0 and redis.call('SREM', tag.ahead, tag.cursor) == 1 do
    tag.ahead_count = tag.ahead_count - 1
    tag.cursor = tag.cursor + 1
  end
end
local function room(tag, entry)
  local has_room = bodies < window_messages and bytes + entry.size <= window_bytes
  return entry.held or entry.bare or tag.open < share or has_room
end
local function hungry(tag)
  if tag.hungry == nil then
    show(tag.visible, tag.row)
    tag.row = {}
    tag.hungry = select(2, head_of(tag.unit, tag.visible, tag.groups, now))
  end
  return tag.hungry
end
-- Whether a message is due so late that it is deferred. `unfiled`: pointers that the wheel does not have, with those of
-- this call.
local unfiled, lost
local function defers(tag, entry)
  if not entry.far then return false end
  lost = lost or not unfiled and not far_whole(meta, far, except, pointers)
  unfiled, tag.mark = unfiled or redis.call('ZCARD', pointers), tag.mark or mark_of(meta, tag.id)
  return after(tag.mark, entry.due, entry.off)
end
local function fits(tag, entry)
  if defers(tag, entry) then return unfiled < POINTERS end
  return tag.open < max_open and (entry.at - now >= near_ms or room(tag, entry) or hungry(tag))
end
local function hold_body(tag, entry)
  if entry.bare or entry.at - now >= near_ms or not room(tag, entry) then return end
  if entry.held == nil and redis.call('HSETNX', body, entry.off, entry.packed) == 1 then
    bodies, bytes, added = bodies + 1, bytes + entry.size, added + entry.size
  else
    redis.call('HSET', refs, entry.off, tonumber(redis.call('HGET', refs, entry.off) or '1') + 1)
  end
  entry.held = true
end
local function insert(tag, entry)
  if defers(tag, entry) then
    tag.later, tag.later_due = tag.later or {}, tag.later_due or {}
    tag.later[#tag.later + 1], tag.later_due[#tag.later + 1] = entry.off, entry.due
    unfiled, taken = unfiled + 1, taken + 1
    return
  end
  tag.row[#tag.row + 1], tag.row[#tag.row + 2] = entry.at, entry.off
  if entry.group ~= '' or #tag.row >= 1000 then show(tag.visible, tag.row) tag.row = {} end
  if entry.at > now then tag.delays = tag.delays + redis.call('ZADD', tag.delayed, entry.at, entry.off) end
  if entry.group ~= '' then
    local fresh = {nonce = 0, count = 0, first = 0, flag = 0, time = entry.at, group = entry.group}
    delivery_write(tag.delivery, entry.off, fresh)
    if fifo then
      group_add(tag.order, tag.groups, entry.off, entry.group, entry.at)
    else
      join(tag.visible, tag.order, tag.groups, {due = entry.at, off = entry.off, group = entry.group}, now)
    end
    tag.grouped = true
  end
  hold_body(tag, entry)
  tag.open, taken, head = tag.open + 1, taken + 1, math.min(head or entry.at, entry.at)
end
local function skip(tag, entry)
  if entry.reason == '' then return end
  local times = defers(tag, entry) and {entry.due} or nil -- what is due so late counts as taken, and was not deferred
  if times then set_excepted(except, tag.id, entry.due, entry.off) end
  journal(meta, outbox, now, 'skipped', tonumber(tag.id), {entry.off}, times, entry.reason)
end
local function set_aside(tag, entry, wanted)
  if redis.call('SADD', tag.ahead, entry.off) == 0 then return end
  tag.ahead_count = tag.ahead_count + 1
  if wanted then insert(tag, entry) else skip(tag, entry) end
end
-- One record for one tag: in order (moves the cursor) or early (remembered in ahead).
local function take(tag, entry, wanted)
  if entry.off < tag.cursor or tag.full then return end
  if entry.off ~= tag.cursor and not (scan_from >= 0 and tag.cursor >= scan_from) then
    if not fifo and entry.off - tag.cursor <= EARLY and (not wanted or fits(tag, entry)) then
      set_aside(tag, entry, wanted)
    end
    return
  end
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
end
-- A message that repeats an earlier one is settled under every tag at once, also where the window is not there yet.
local function set_aside_everywhere(entry)
  for _, tag in ipairs(tags) do
    if entry.off > tag.cursor then set_aside(tag, entry, false) end
  end
end
local function process(entry)
  if early_copy(entry, tags, scan_from) then return end
  if fifo and not turn(f, entry) then return end
  if entry.repeats then set_aside_everywhere(entry) end
  if entry.move_key ~= '' then first_copy(meta, outbox, origins, now, tonumber(tags[1].id), entry) end
  for i = 1, tag_count do
    take(tags[i], entry, entry.size > 0 and string.sub(entry.mask, i, i) == '1')
  end
end
local is_known = not fifo or turn_known(f, meta, m[7], ARGV[12], ARGV[13])
if is_known then
  for a = 16 + tag_count, #ARGV, 8 do
    local entry = {off = tonumber(ARGV[a]), packed = ARGV[a + 1], mask = ARGV[a + 2], move_key = ARGV[a + 3],
      reason = ARGV[a + 4]}
    entry.group, entry.dedup = ARGV[a + 5], ARGV[a + 6]
    entry.size = #entry.packed
    if entry.size > 0 then
      local sent
      sent, entry.due = struct.unpack('>I8I8', entry.packed)
      entry.at = entry.due == sent and math.min(sent, now) or due_here(entry.due, early_ms, now)
      shown = entry.due == sent and math.max(shown, entry.at) or shown
      entry.bare, entry.far = entry.size == HEADER, not fifo and entry.due - sent >= FAR
    end
    process(entry)
    for off = entry.off + 1, entry.off + ARGV[a + 7] - 1 do
      entry.off = off
      process(entry)
    end
  end
  if fifo then
    for late in turn_next, f do process(late) end
  end
end
if added > 0 then redis.call('HINCRBY', meta, 'bytes', added) end
for i = 1, tag_count do
  local tag = tags[i]
  show(tag.visible, tag.row)
  if is_known and scan_from >= 0 and tag.cursor >= scan_from and not tag.full and scan_next > tag.cursor then
    tag.cursor = scan_next
    pass_ahead(tag)
  end
  if tag.later then defer(meta, far, pointers, outbox, now, tag.id, tag.later, tag.later_due) end
  if tag.cursor ~= tag.first then redis.call('HSET', meta, 'c:' .. tag.id, tag.cursor) end
  if tag.open ~= tag.open_first then
    seal(meta, tag.id, tag.visible, tag.delivery) redis.call('HSET', meta, 'shown', shown)
    if tag.grouped then seal_groups(meta, tag.id, tag.order, tag.groups) end
  end
  if tag.ahead_count ~= tag.ahead_first then seal_ahead(meta, tag.id, tag.ahead) end
  if tag.delays > 0 then seal_delayed(meta, tag.id, tag.delayed) end
  cursors[i], full[i] = tag.cursor, tag.full and 1 or 0
end
if lost then return broken(meta) end
if unfiled then seal_far(meta, far, except, pointers) end
if fifo and f.seen >= 0 then
  if scan_from >= 0 and f.seen >= scan_from and scan_next > f.seen then f.seen = scan_next end
  redis.call('HSET', meta, 'seen', f.seen, 'dedups', redis.call('HLEN', dedup))
end
if taken > 0 and channel ~= '' then redis.call('PUBLISH', channel, payload .. ' ' .. (head or 0)) end
return {'OK', cursors, full, taken, f.seen, f.repeats, head or 0}
