-- Deletes a mailbox with all that is in it, and wakes who waits for it.
-- KEYS[1] meta  [2] box  [3] mail
-- ARGV[1] partitions  [2] any 8 bytes
-- Reply: {'ok', number of messages that were in it, 1 if there was one}, or a refusal.
local b, foreign = open(KEYS[2], KEYS[3])
if not b then return {'foreign', foreign} end
local existed = call('DEL', KEYS[2], KEYS[3])
local at = 1
while at <= #b.waiters do
  local process, _
  process, _, at = unpacked('<c16d', b.waiters, at)
  -- ':box:' is as long as ':meta'.
  local name = string.sub(KEYS[2], #KEYS[1] + 1)
  try('PUBLISH', string.sub(KEYS[1], 1, -5) .. 'wake:' .. process, pack('<Hc0H', #name, name, 0))
end
return {'ok', b.last - b.from, existed > 0 and 1 or 0}
