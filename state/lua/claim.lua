-- claim: holds messages for a redrive task: not leased, not counted, invisible until settled, given back or lapsed.
-- KEYS 1 meta hash: generation, seq, drained, origins, fifo, c:<tag>, n:<tag>, g:<tag>, a:<tag>, d:<tag>
-- KEYS 2 visible zset: offset by next visible ms
-- KEYS 3 delivery hash: offset -> delivery
-- KEYS 4 ahead set: offsets at or above the cursor already taken
-- KEYS 5 outbox list: journal entries
-- KEYS 6 order zset: group and offset
-- KEYS 7 groups zset: groups, by next ms (FIFO) or by how many are in flight (fair)
-- KEYS 8 origins zset: move key, score is the offset of its first copy
-- KEYS 9 delayed zset: offset by due ms
-- ARGV 1 generation
-- ARGV 2 now: ms, the time of the service; 0 = Redis' clock (tests)
-- ARGV 3 tag
-- ARGV 4 claim_ms
-- ARGV 5 beyond: 1 = also what the window has not taken, whatever it is (Kafka no longer has it)
-- ARGV 6 early_ms: so long before its end a claim may be taken over: by a task, before a consumer can get the message
-- ARGV + per message: offset, group (8 bytes, FIFO only), move key
-- ARGV + with move key '' it is claimed in the window only: a load alone knows what it repeats
-- OUT 1 status
-- OUT 2 nonce: of what is claimed, 0 = nothing is
-- OUT 3 words: {status word, until when a lost claim before held it (ms, 0 = none), per message}
-- STATUS OK BUSY HELD SETTLED STORED FULL LOST
-- INV a leased or dying message is never claimed; a parked one may be; in FIFO units nothing behind one that is held or
--   stored is claimed
-- COST O(offsets log open)
-- VERSION 6
-- INCLUDE clock unit groups fair origins
local meta, visible, delivery, ahead, outbox = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local unit, refused = guard(meta, ARGV[1], ARGV[3], visible, delivery, KEYS[6], KEYS[7])
refused = refused or blocked(unit, meta, outbox)
if refused then return refused end
if not ahead_whole(unit, ahead) or not delayed_whole(meta, ARGV[3], KEYS[9]) then return broken(meta) end
local now, tag, claim_ms = clock(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local words, claimed, times, held, touched = {}, {}, {}, {}, {}
local early, waits = tonumber(ARGV[6]), false
for a = 7, #ARGV, 3 do
  local off = tonumber(ARGV[a])
  local open = redis.call('ZSCORE', visible, off)
  local d = delivery_read(delivery, off) or {nonce = 0, count = 0, first = 0, flag = 0, time = 0,
    group = unit.fifo and ARGV[a + 1] or ''}
  local word, again = 'OK', 0
  if waits then
    word = 'HELD'
  elseif open then
    if d.flag == 3 then again = d.time end
    local over = d.flag == 3 and d.time - early or d.time
    if d.nonce ~= 0 and over > now and d.flag ~= 4 then word = d.flag == 3 and 'HELD' or 'BUSY' end
  elseif off < unit.cursor or redis.call('SISMEMBER', ahead, off) == 1 then
    word = 'SETTLED'
  elseif ARGV[5] == '0' and ARGV[a + 2] == '' then
    word = 'STORED'
  else
    local entry = {off = off, move_key = ARGV[a + 2]}
    if entry.move_key ~= '' then first_copy(meta, outbox, KEYS[8], now, tag, entry) end
    redis.call('SADD', ahead, off)
    if entry.reason then
      journal(meta, outbox, now, 'skipped', tag, {off}, nil, entry.reason)
      word = 'SETTLED'
    elseif unit.fifo then
      group_add(KEYS[6], KEYS[7], off, d.group, now)
    end
  end
  if word == 'OK' then
    if unit.fifo then touched[d.group] = true else leave(KEYS[6], KEYS[7], off, d) end
    d.flag, d.time = 3, now + claim_ms
    claimed[#claimed + 1], times[#times + 1], held[#held + 1] = off, d.time, d
  end
  waits = waits or unit.fifo and (word == 'HELD' or word == 'STORED')
  words[#words + 1], words[#words + 2] = word, again
end
local nonce = 0
seal_ahead(meta, ARGV[3], ahead)
if #claimed > 0 then
  nonce = journal(meta, outbox, now, 'claimed', tag, claimed, times)
  for i, off in ipairs(claimed) do
    held[i].nonce = nonce
    delivery_write(delivery, off, held[i])
    redis.call('ZADD', visible, held[i].time, off)
    redis.call('ZREM', KEYS[9], off)
  end
  seal(meta, ARGV[3], visible, delivery)
  seal_delayed(meta, ARGV[3], KEYS[9])
  if unit.fifo then regroup_all(KEYS[6], KEYS[7], delivery, touched, now) end
  if unit.fifo or unit.fair then seal_groups(meta, ARGV[3], KEYS[6], KEYS[7]) end
end
return {'OK', nonce, words}
