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
