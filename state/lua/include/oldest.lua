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
