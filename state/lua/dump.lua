-- dump: one moment of a unit, for comparing it with the journal. Changes nothing.
-- KEYS 1 meta hash: generation, seq, c:<tag> cursors, f:<tag> floors, w:<tag> marks, and the totals of each tag
-- KEYS 2 outbox list: journal entries
-- KEYS 3 far hash: how many are deferred, by tag and slot
-- KEYS 4 except hash: bitmaps of offsets that are deferred no longer
-- KEYS + per tag: visible zset, delivery hash, ahead set
-- ARGV 1 generation
-- ARGV + tag ids
-- OUT 1 status
-- OUT 2 seq: of the last entry
-- OUT 3 waiting: seq of the last entry in the outbox, 0 = none
-- OUT 4 tags: {cursor or -1, floor, packed {offset, next visible ms ...}, {offset, delivery ...}, packed {offset ahead
--   ...}, mark, {what was ever done under it, in the order of include/totals.lua}} per tag
-- OUT 5 far: {field of a tag and slot, how many are deferred there ...}
-- OUT 6 except: {field of a tag, slot and chunk, bitmap ...}
-- STATUS OK LOST
-- INV reads only; all of it is of one moment, after the entry with number seq
-- COST O(open + ahead)
-- VERSION 3
-- INCLUDE totals
local meta, outbox = KEYS[1], KEYS[2]
if redis.call('HGET', meta, 'generation') ~= ARGV[1] then return {'LOST'} end
local last = redis.call('LINDEX', outbox, -1)
local out = {}
for i = 2, #ARGV do
  local k = 4 + (i - 2) * 3
  -- cmsgpack packs a list at the speed of C; struct.pack in a loop took six times as long.
  local row = {
    tonumber(redis.call('HGET', meta, 'c:' .. ARGV[i]) or '-1'),
    tonumber(redis.call('HGET', meta, 'f:' .. ARGV[i]) or '0'),
    cmsgpack.pack(redis.call('ZRANGE', KEYS[k + 1], 0, -1, 'WITHSCORES')),
    redis.call('HGETALL', KEYS[k + 2]),
    cmsgpack.pack(redis.call('SMEMBERS', KEYS[k + 3])),
    redis.call('HGET', meta, 'w:' .. ARGV[i]) or '0:-1',
    totals_of(meta, ARGV[i]),
  }
  out[#out + 1] = row
end
local seq, waiting = tonumber(redis.call('HGET', meta, 'seq') or '0'), last and cmsgpack.unpack(last)[1] or 0
return {'OK', seq, waiting, out, redis.call('HGETALL', KEYS[3]), redis.call('HGETALL', KEYS[4])}
