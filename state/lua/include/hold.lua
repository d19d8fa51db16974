-- KEPT: how long (ms) the key of a lock outlives its time, so that what nobody wants again leaves Redis at last;
-- nobody's hold ends by it.
local KEPT = 3600000
-- Writes a lock for its holder: the beat that contenders watch is the whole value, which changes with each renewal.
local function hold(key, token, hold_ms, now)
  redis.call('SET', key, string.format('%s %.0f %.0f', token, hold_ms, now + hold_ms), 'PX', hold_ms + KEPT)
end
-- Whether the value of a lock is of that holder.
local function is_of(held, token) return held and string.sub(held, 1, #token + 1) == token .. ' ' end
