-- Whether a tag has nothing due that somebody may have now (fair: nothing of quiet groups), though it may have much open: then the window takes
-- more than its bodies' bound, without bodies, for what comes behind may be free.
local function hungry(unit, visible, groups, now)
  if not unit.fifo and not unit.fair then return false end
  return #redis.call('ZRANGEBYSCORE', unit.fifo and groups or visible, 0, now, 'LIMIT', 0, 1) == 0
end
