-- What was ever done under a tag, by kind: a field of the meta hash for each that was, as Totals of schemas/records.
local KINDS = {'leased', 'leased_again', 'returned', 'returned_again', 'acked', 'released', 'dead'}
local function totals_of(meta, tag)
  local fields = {}
  for i, kind in ipairs(KINDS) do fields[i] = kind .. ':' .. tag end
  local found = redis.call('HMGET', meta, unpack(fields))
  for i = 1, #KINDS do found[i] = tonumber(found[i] or '0') end
  return found
end
