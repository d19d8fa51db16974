-- The common load: messages without bodies, groups, delays, moves and repeats that are sent through to the only tag of
-- a standard unit, in order from its cursor on, with room for all. It does what load.lua does and answers the same; in
-- any other case it changes nothing, and load.lua goes on.
-- FAR: a delay that is far (ms), as vocabulary.FAR_DELAY_MS.
local FAR = 300000
do
  local call, meta, visible, tag = redis.call, KEYS[1], KEYS[12], ARGV[16]
  if ARGV[14] == '1' and ARGV[10] == '-1' and ARGV[2] == '0' then
    local names = {'generation', 'c:' .. tag, 'n:' .. tag, 'fifo', 'g:' .. tag, 'a:' .. tag, 'bytes', 'seen', 'origins',
      'shown'}
    local m = call('HMGET', meta, unpack(names))
    local open, held = call('ZCARD', visible), call('HLEN', KEYS[15])
    if m[1] == ARGV[1] and m[3] == open .. ':' .. held and not m[4] and m[5] == '0:0' and m[6] == '0' and m[7] == '0'
      and call('EXISTS', KEYS[2], KEYS[3], KEYS[13]) == 0 and m[9] == tostring(call('ZCARD', KEYS[5])) then
      local now = tonumber(ARGV[3])
      if now == 0 then
        local t = call('TIME')
        now = t[1] * 1000 + math.floor(t[2] / 1000)
      end
      local row, cursor, plain, shown, head = {}, tonumber(m[2]), true, tonumber(m[10] or '0'), now
      for a = 17, #ARGV, 8 do
        local packed, count = ARGV[a + 1], tonumber(ARGV[a + 7])
        -- A header alone; whose reason, group and so on are empty.
        plain = plain and #packed == 24 and ARGV[a + 2] == '1' and tonumber(ARGV[a]) == cursor
          and #ARGV[a + 3] + #ARGV[a + 4] + #ARGV[a + 5] + #ARGV[a + 6] == 0
            and open + #row / 2 + count <= tonumber(ARGV[8])
        local sent, due = 0, 0
        if plain then sent, due = struct.unpack('>I8I8', packed) end
        local at = due == sent and math.min(due, now) or due + ARGV[15]
        if not plain or at > now or due - sent >= FAR then plain = false break end
        for off = cursor, cursor + count - 1 do row[#row + 1], row[#row + 2] = at, off end
        cursor, head = cursor + count, math.min(head, at)
        if due == sent then shown = math.max(shown, at) end
      end
      if plain and #row > 0 and #row <= 2000 then
        open = open + call('ZADD', visible, unpack(row))
        call('HSET', meta, 'c:' .. tag, cursor, 'n:' .. tag, open .. ':' .. held, 'shown', shown)
        if ARGV[4] ~= '' then call('PUBLISH', ARGV[4], ARGV[5] .. ' ' .. head) end
        return {'OK', {cursor}, {0}, #row / 2, tonumber(m[8] or '-1'), {}, head}
      end
    end
  end
end
