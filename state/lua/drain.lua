-- drain: forgets the first entries of the outbox (Kafka has them) and shows the next ones, in seq order.
-- KEYS 1 meta hash: epoch, drained
-- KEYS 2 outbox list: journal entries
-- ARGV 1 epoch
-- ARGV 2 done_seq: entries up to this seq are in the journal, 0 = none new
-- ARGV 3 max: entries to show
-- OUT 1 status
-- OUT 2 entries: {entry ...}, packed
-- STATUS OK FENCED
-- INV an entry leaves the outbox only after the journal has it
-- COST O(done + max)
-- VERSION 1
local meta, outbox = KEYS[1], KEYS[2]
if redis.call('HGET', meta, 'epoch') ~= ARGV[1] then return {'FENCED'} end
local done_seq = tonumber(ARGV[2])
if done_seq > 0 then
  -- seq has no holes, so the first entry tells how many are done.
  local first = redis.call('LINDEX', outbox, 0)
  if first then redis.call('LTRIM', outbox, math.max(0, done_seq - cmsgpack.unpack(first)[1] + 1), -1) end
  -- Two loaders of one owner may drain at once (one of them rebuilds): the slower must not take it back.
  if done_seq > tonumber(redis.call('HGET', meta, 'drained') or '0') then
    redis.call('HSET', meta, 'drained', done_seq)
  end
end
return {'OK', redis.call('LRANGE', outbox, 0, tonumber(ARGV[3]) - 1)}
