-- What a handle is good for: OK, or why its delivery is over, as StaleReason of schemas/vocabulary.py. `window` is
-- where its message would be: {visible, ahead, cursor}; `d` is the delivery that the message has. A handle is of a
-- delivery with its nonce and, when it names a deadline (0 and nil = none), with that. `late`: a lease that has run
-- out counts still.
local OF_FLAG = {'DYING', 'DYING', 'CLAIMED', 'PARKED'}
local function judge(window, off, d, nonce, deadline, now, late)
  if not d then
    local open = redis.call('ZSCORE', window.visible, off)
    local taken = off < window.cursor or redis.call('SISMEMBER', window.ahead, off) == 1
    return taken and not open and 'SETTLED' or 'RELEASED'
  end
  if d.flag ~= 0 then return OF_FLAG[d.flag] end
  -- Nobody holds it: it was released (nonce 0), or rebuilt from a journal that lacked the handle's delivery.
  if d.nonce < tonumber(nonce) then return 'RELEASED' end
  if d.nonce > tonumber(nonce) then return 'SUPERSEDED' end
  if deadline and deadline ~= '0' and d.time ~= tonumber(deadline) then return 'USED' end
  return (late or d.time > now) and 'OK' or 'EXPIRED'
end
