-- Now in epoch ms: the time of the service, which whoever calls gives (ADR 0040), or Redis' own clock for '0' (tests).
local function clock(given)
  if given ~= '0' then return tonumber(given) end
  local t = redis.call('TIME')
  return t[1] * 1000 + math.floor(t[2] / 1000)
end
-- When a message whose delay ends at `due` by the log's clock is visible, in the time of the service. While that is
-- behind, it goes faster by a hundredth: so much longer is what it has to wait.
local function due_here(due, early_ms, now)
  local at = due + early_ms
  return early_ms < 0 and math.min(due, math.ceil(at + math.max(0, at - now) / 100)) or at
end
