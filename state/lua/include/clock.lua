-- Now in epoch ms: the time of the service, which whoever calls gives (ADR 0040), or Redis' own clock for '0' (tests).
local function clock(given)
  if given ~= '0' then return tonumber(given) end
  local t = redis.call('TIME')
  return t[1] * 1000 + math.floor(t[2] / 1000)
end
