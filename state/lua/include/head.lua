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
