-- How many messages of a tag are leased, dying or held by a task: neither visible, nor delayed, nor parked. It is not
-- counted while few are open: then 0.
local FEW = 1000
local function leased_of(visible, delayed, open, now)
  if open < FEW then return 0 end
  local later = redis.call('ZCOUNT', visible, '(' .. now, '(' .. PARKED)
  return math.max(0, later - redis.call('ZCOUNT', delayed, '(' .. now, '+inf'))
end
