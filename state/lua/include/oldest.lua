-- The offsets (as texts) with the lowest visible times up to `until_ms`, `asked` at most; of one ms those with lower offsets first. Redis
-- has equal times in the order of the digits, so 10 before 9: where numbers of digits may differ within a ms they are sorted here. So many
-- offsets of a ms are looked for.
local OF_ONE_MS = 1000
local function oldest(visible, until_ms, asked)
  local found = redis.call('ZRANGEBYSCORE', visible, '-inf', until_ms, 'LIMIT', 0, asked + 1)
  local mixed = false
  for i = 2, #found do mixed = mixed or #found[i] < #found[i - 1] end
  local last = found[asked]
  if found[asked + 1] then
    -- Lower ones of its ms may be behind it: 9 is behind 52, and 99 behind 9.
    if not mixed and tonumber(last) - 10 ^ (#last - 1) < OF_ONE_MS then
      mixed = redis.call('ZSCORE', visible, last) == redis.call('ZSCORE', visible, found[asked + 1])
    end
    found[asked + 1] = nil
  end
  if not mixed then return found end
  local all, rows = {}, redis.call('ZRANGEBYSCORE', visible, '-inf', until_ms, 'WITHSCORES', 'LIMIT', 0, asked + OF_ONE_MS)
  for i = 1, #rows, 2 do all[#all + 1] = {rows[i], tonumber(rows[i + 1]), tonumber(rows[i])} end
  table.sort(all, function(a, b) return a[2] < b[2] or a[2] == b[2] and a[3] < b[3] end)
  for i = 1, #found do found[i] = all[i][1] end
  return found
end
