-- recall: writes the moves that a rebuild knows of, so that their second copies are known.
-- KEYS 1 meta hash: epoch, origins
-- KEYS 2 origins zset: move key, score is the offset of its first copy
-- ARGV 1 epoch: of the rebuilder
-- ARGV + per move: key, offset
-- OUT 1 status
-- STATUS OK FENCED
-- INV only the owner's epoch may recall
-- COST O(moves log moves)
-- VERSION 1
local meta, origins = KEYS[1], KEYS[2]
if redis.call('HGET', meta, 'epoch') ~= ARGV[1] then return {'FENCED'} end
for a = 2, #ARGV, 2 do redis.call('ZADD', origins, ARGV[a + 1], ARGV[a]) end
redis.call('HSET', meta, 'origins', redis.call('ZCARD', origins))
return {'OK'}
