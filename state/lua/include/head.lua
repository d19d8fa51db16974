-- What of a tag may be leased next: when, which, and how much is leased already.
-- When the first message of a tag is visible, or since when (ms), or when the first expires if all are parked; -1 =
-- nothing is open. Fair: now, if something is due: the oldest message is one of a noisy group for as long as nobody has
-- met it, so the partitions of a queue are asked in turn, that which was asked longest ago first. And whether the tag
-- is hungry: it has nothing due that somebody may have now (fair: nothing of quiet groups), though it may have much
-- open. Then the window takes more than its bodies' bound, without bodies, for what comes behind may be free.
local function head_of(unit, visible, groups, now)
  local score = tonumber(redis.call('ZRANGE', unit.fifo and groups or visible, 0, 0, 'WITHSCORES')[2])
  if not score then return -1, true end
  if score >= PARKED then score = score - PARKED end
  if score > now or not unit.fair then return math.floor(score), math.floor(score) > now end
  return now, score < 0 and #redis.call('ZRANGEBYSCORE', visible, 0, now, 'LIMIT', 0, 1) == 0
end
-- The offsets (as texts) with the lowest visible times up to `until_ms`, and these times, `asked` at most; of one ms
-- those with lower offsets first. Redis has equal times in the order of the digits, so 10 before 9: where numbers of
-- digits may differ within a ms they are sorted here. So many offsets of a ms are looked for.
local OF_ONE_MS = 1000
local function oldest(visible, until_ms, asked)
  local found, times, mixed = {}, {}, false
  local rows = redis.call('ZRANGEBYSCORE', visible, '-inf', until_ms, 'WITHSCORES', 'LIMIT', 0, asked + 1)
  for i = 1, #rows / 2 do
    found[i], times[i] = rows[2 * i - 1], rows[2 * i]
    mixed = mixed or i > 1 and #found[i] < #found[i - 1]
  end
  local last = found[asked]
  if found[asked + 1] then
    -- Lower ones of its ms may be behind it: 9 is behind 52, and 99 behind 9.
    mixed = mixed or tonumber(last) - 10 ^ (#last - 1) < OF_ONE_MS and times[asked] == times[asked + 1]
    found[asked + 1], times[asked + 1] = nil, nil
  end
  if not mixed then return found, times end
  local all = {}
  rows = redis.call('ZRANGEBYSCORE', visible, '-inf', until_ms, 'WITHSCORES', 'LIMIT', 0, asked + OF_ONE_MS)
  for i = 1, #rows, 2 do all[#all + 1] = {rows[i], tonumber(rows[i + 1]), tonumber(rows[i]), rows[i + 1]} end
  table.sort(all, function(a, b) return a[2] < b[2] or a[2] == b[2] and a[3] < b[3] end)
  for i = 1, #found do found[i], times[i] = all[i][1], all[i][4] end
  return found, times
end
-- How many messages of a tag are leased, dying or held by a task: neither visible, nor delayed, nor parked. It is not
-- counted while few are open: then 0.
local FEW = 1000
local function counted(visible, delayed, now)
  local later = redis.call('ZCOUNT', visible, '(' .. now, '(' .. PARKED)
  if later == 0 then return 0 end
  return math.max(0, later - redis.call('ZCOUNT', delayed, '(' .. now, '+inf'))
end
local function leased_of(visible, delayed, open, now)
  return open < FEW and 0 or counted(visible, delayed, now)
end
