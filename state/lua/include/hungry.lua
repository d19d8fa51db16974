-- Whether a tag has nothing due that somebody may have now, though it may have much open: then the window takes more than its bodies' bound,
-- without bodies, for what comes behind may be free.
local function hungry(unit, groups, now)
  return unit.fifo and #redis.call('ZRANGEBYSCORE', groups, '-inf', now, 'LIMIT', 0, 1) == 0
end
