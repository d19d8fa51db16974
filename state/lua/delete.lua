-- delete: settles one message under every tag that has not settled it, unless it is leased under one of them.
-- KEYS 1 meta hash: generation, seq, bytes, fifo, c:<tag>, n:<tag>, g:<tag>, a:<tag>, d:<tag>
-- KEYS 2 body hash: offset -> header and record
-- KEYS 3 refs hash: offset -> holders
-- KEYS 4 outbox list: journal entries
-- KEYS + per tag: visible zset, ahead set, delayed zset, delivery hash, order zset, groups zset
-- ARGV 1 generation
-- ARGV 2 now: ms, 0 = Redis' clock
-- ARGV 3 channel: wake-ups go there (a group that is free again)
-- ARGV 4 partition: the payload of a wake-up
-- ARGV 5 offset
-- ARGV 6 wanted: a digit per tag, 1 = the tag wants the message: only what was received under none of them is settled; "" = whatever it is
-- ARGV + tag ids
-- OUT 1 status
-- STATUS OK BUSY RECEIVED SETTLED LOST
-- INV all tags or none
-- COST O(tags)
-- VERSION 4
-- INCLUDE clock journal delivery guard groups fair settle
local meta, body, refs, outbox = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local now, off = clock(ARGV[2]), tonumber(ARGV[5])
local wanted = ARGV[6]
local open, received = {}, false
for i = 7, #ARGV do
  local k = 4 + (i - 7) * 6
  local unit, refused = guard(meta, ARGV[1], ARGV[i], KEYS[k + 1], KEYS[k + 4], KEYS[k + 5], KEYS[k + 6])
  if refused then return refused end
  if not ahead_whole(unit, KEYS[k + 2]) then return broken(meta) end
  if redis.call('ZSCORE', KEYS[k + 1], off) then
    local d = delivery_read(KEYS[k + 4], off)
    if d and d.nonce ~= 0 and d.time > now then return {'BUSY'} end
    received = received or d and d.count > 0
    open[i] = {word = 'window', unit = unit, d = d}
  elseif off >= unit.cursor and redis.call('SISMEMBER', KEYS[k + 2], off) == 0 then
    open[i] = {word = 'beyond', unit = unit}
  else
    received = received or string.sub(wanted, i - 6, i - 6) == '1'
  end
end
if wanted ~= '' and received and next(open) then return {'RECEIVED'} end
local found = false
for i = 7, #ARGV do
  local k, it = 4 + (i - 7) * 6, open[i]
  if it then
    local touched = {}
    if it.word == 'window' then
      settle(meta, KEYS[k + 1], KEYS[k + 4], body, refs, {off})
      redis.call('ZREM', KEYS[k + 3], off)
      if it.unit.fifo then settle_ordered(KEYS[k + 5], off, it.d.group, touched) else leave(KEYS[k + 5], KEYS[k + 6], off, it.d) end
    else
      redis.call('SADD', KEYS[k + 2], off)
    end
    seal(meta, ARGV[i], KEYS[k + 1], KEYS[k + 4])
    seal_ahead(meta, ARGV[i], KEYS[k + 2])
    seal_delayed(meta, ARGV[i], KEYS[k + 3])
    if it.unit.fifo and regroup_all(KEYS[k + 5], KEYS[k + 6], KEYS[k + 4], touched, now) then redis.call('PUBLISH', ARGV[3], ARGV[4]) end
    if it.unit.fifo or it.unit.fair then seal_groups(meta, ARGV[i], KEYS[k + 5], KEYS[k + 6]) end
    found = true
    journal(meta, outbox, now, 'deleted', tonumber(ARGV[i]), {off})
  end
end
return {found and 'OK' or 'SETTLED'}
