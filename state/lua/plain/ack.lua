-- The common ack: a standard unit that holds no bodies, and only handles of deliveries that are not over, without
-- deadlines. It does what ack.lua does and answers the same; in any other case it changes nothing, and ack.lua goes on.
do
  local call, meta, visible, delivery, outbox, tag = redis.call, KEYS[1], KEYS[2], KEYS[3], KEYS[6], ARGV[3]
  local m = call('HMGET', meta, 'generation', 'c:' .. tag, 'n:' .. tag, 'fifo', 'g:' .. tag, 'seq', 'drained',
    'acked:' .. tag)
  local open, held, count = call('ZCARD', visible), call('HLEN', delivery), (#ARGV - 7) / 2
  local waiting = call('LLEN', outbox)
  if m[1] == ARGV[1] and m[2] and m[3] == open .. ':' .. held and not m[4] and m[5] == '0:0' and m[6] and m[7]
    and waiting == m[6] - m[7] and waiting < 20000 and ARGV[7] == '2' and count > 0 and count <= 1000
    and call('EXISTS', KEYS[4], KEYS[5]) == 0 then
    local now = tonumber(ARGV[2])
    if now == 0 then
      local t = call('TIME')
      now = t[1] * 1000 + math.floor(t[2] / 1000)
    end
    local members, offsets, seen, plain = {}, {}, {}, true
    for i = 1, count do members[i] = ARGV[6 + 2 * i] end
    for i, packed in ipairs(call('HMGET', delivery, unpack(members))) do
      local off = tonumber(members[i])
      if not packed or seen[off] then plain = false break end
      local nonce, _, _, flag, time = struct.unpack('>I8I4I8I1I8', packed)
      if nonce ~= tonumber(ARGV[7 + 2 * i]) or flag ~= 0 or time <= now and ARGV[4] ~= '1' then plain = false break end
      offsets[i], seen[off] = off, true
    end
    if plain then
      local seq = m[6] + 1
      open, held = open - call('ZREM', visible, unpack(members)), held - call('HDEL', delivery, unpack(members))
      call('RPUSH', outbox, cmsgpack.pack({seq, now, 'acked', tonumber(tag), offsets, 0, ''}))
      call('HSET', meta, 'seq', seq, 'n:' .. tag, open .. ':' .. held, 'acked:' .. tag, (m[8] or 0) + count)
      return {'OK', {}, seq}
    end
  end
end
