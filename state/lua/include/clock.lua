-- Now in epoch ms: Redis' own clock, or `given` (tests) when it is not '0'.
local function clock(given)
  if given ~= '0' then return tonumber(given) end
  local t = redis.call('TIME')
  return t[1] * 1000 + math.floor(t[2] / 1000)
end
