-- FIFO: records are taken in the order of the log. One that comes before the one it follows waits in pending (1,000 at
-- most; the loader brings what had no room). `f` is {seen, dedup, ids, sure_at, sure_from, pending, scan_from, tags,
-- repeats}.
-- Whether the order is known; `sure_at` other than -1: it is found again, from the scan on. Until then nothing is
-- taken, nor passed by a scan that began before.
local function turn_known(f, meta, unsure, sure_at, sure_from)
  if f.seen < 0 and sure_at ~= '-1' then
    f.seen = f.scan_from
    unsure = sure_at .. ':' .. sure_from
    redis.call('HSET', meta, 'unsure', unsure)
  end
  sure_at, sure_from = string.match(unsure or '0:0', '(%d+):(%d+)')
  f.sure_at, f.sure_from = tonumber(sure_at), tonumber(sure_from)
  return f.seen >= 0
end
-- A record's turn: false = not yet.
local function turn(f, entry)
  if entry.off < f.seen then
    -- For a tag that whoever looked at it did not know yet: a tag that is made at that moment.
    if entry.dedup ~= '' and entry.size > 0 then
      local _, first = dedup_known(f.dedup, entry.dedup, struct.unpack('>I8', entry.packed))
      if first and first < entry.off then entry.reason, entry.size, entry.repeats = 'duplicate', 0, first end
    end
    return true
  end
  if entry.off > f.seen and not (f.scan_from >= 0 and f.seen >= f.scan_from) then
    entry.tags = f.tags
    if redis.call('HLEN', f.pending) < 1000 then redis.call('HSET', f.pending, entry.off, cmsgpack.pack(entry)) end
    return false
  end
  f.seen = entry.off + 1
  redis.call('HDEL', f.pending, entry.off)
  if entry.dedup == '' or entry.size == 0 then return true end
  local at = struct.unpack('>I8', entry.packed)
  dedup_forget(f.dedup, f.ids, at)
  local first = dedup_first(f, entry.dedup, entry.off, at)
  if first and first ~= entry.off then
    entry.reason, entry.size, entry.repeats = 'duplicate', 0, first
    f.repeats[#f.repeats + 1], f.repeats[#f.repeats + 2] = entry.off, first
  end
  return true
end
-- The pending record whose turn it is now, or nil. One that was written for other tags than now is left to the loader.
local function turn_next(f)
  local packed = redis.call('HGET', f.pending, f.seen)
  if not packed then return nil end
  redis.call('HDEL', f.pending, f.seen)
  local entry = cmsgpack.unpack(packed)
  return entry.tags == f.tags and entry or nil
end
