-- The common receive: a standard unit that holds no bodies, of which nothing that is due was delivered before or is
-- beyond its retention. It does what receive.lua does and answers the same; in any other case it changes nothing, and
-- receive.lua goes on.
do
  local call, meta, visible, delivery, outbox, tag = redis.call, KEYS[1], KEYS[2], KEYS[3], KEYS[6], ARGV[3]
  local m = call('HMGET', meta, 'generation', 'c:' .. tag, 'n:' .. tag, 'fifo', 'g:' .. tag, 'seq', 'drained', 'shown',
    'leased:' .. tag)
  local open, held = call('ZCARD', visible), call('HLEN', delivery)
  local waiting = call('LLEN', outbox)
  if m[1] == ARGV[1] and m[2] and m[3] == open .. ':' .. held and not m[4] and m[5] == '0:0' and m[6] and m[7]
    and waiting == m[6] - m[7] and waiting < 20000 and ARGV[12] == '0' and call('EXISTS', KEYS[4]) == 0 then
    local now = tonumber(ARGV[2])
    if now == 0 then
      local t = call('TIME')
      now = t[1] * 1000 + math.floor(t[2] / 1000)
    end
    now = math.max(now, tonumber(m[8] or '0')) -- as include/unit.lua, unit_clock
    local max, until_ms, due, since = tonumber(ARGV[4]), tonumber(ARGV[13]), {}, {}
    until_ms = until_ms > 0 and math.min(until_ms, now) or now
    local plain = #call('ZRANGEBYSCORE', visible, '-inf', now - ARGV[8], 'LIMIT', 0, 1) == 0
    if plain then
      local rows = call('ZRANGEBYSCORE', visible, '-inf', until_ms, 'WITHSCORES', 'LIMIT', 0, max + 1)
      for i = 1, #rows / 2 do due[i], since[i] = rows[2 * i - 1], rows[2 * i] end
      -- As include/head.lua: where numbers of digits may differ within a ms, the order of Redis is not that of the
      -- log.
      for i = 2, #due do plain = plain and #due[i] == #due[1] end
      if due[max + 1] then
        plain = plain and due[max] - 10 ^ (#due[max] - 1) >= 1000
        due[max + 1], since[max + 1] = nil, nil
      end
    end
    if plain and #due > 0 then
      for _, packed in ipairs(call('HMGET', delivery, unpack(due))) do plain = plain and not packed end
    end
    if plain then
      local lease_ms, nonce, fresh = tonumber(ARGV[5]), 0, {}
      local fresh_until = now + math.max(lease_ms < 0 and ARGV[6] or lease_ms, 1)
      if #due > 0 then
        local times, row, deliveries = {}, {}, {}
        nonce = m[6] + 1
        local first = struct.pack('>I8I4I8I1I8', nonce, 1, now, 0, fresh_until)
        for i, off in ipairs(due) do
          fresh[i], times[i] = tonumber(off), fresh_until
          row[2 * i - 1], row[2 * i], deliveries[2 * i - 1], deliveries[2 * i] = fresh_until, off, off, first
        end
        call('ZADD', visible, unpack(row))
        call('HSET', delivery, unpack(deliveries))
        call('RPUSH', outbox, cmsgpack.pack({nonce, now, 'leased', tonumber(tag), fresh, times, ''}))
        call('HSET', meta, 'seq', nonce, 'n:' .. tag, open .. ':' .. held + #due, 'leased:' .. tag,
          (m[9] or 0) + #due)
      end
      local leased = open < 1000 and 0
        or math.max(0, call('ZCOUNT', visible, '(' .. now, '+inf') - call('ZCOUNT', KEYS[7], '(' .. now, '+inf'))
      local head = tonumber(call('ZRANGE', visible, 0, 0, 'WITHSCORES')[2])
      local hungry = (not head or math.floor(head) > now) and 1 or 0
      local first = head and math.floor(head) or -1
      return {'OK', now, nonce, first, tonumber(m[2]), open, leased, hungry, {}, {}, fresh_until, fresh,
        table.concat(since, ' ')}
    end
  end
end
