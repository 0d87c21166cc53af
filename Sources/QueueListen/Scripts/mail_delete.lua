-- Deletes a mailbox with its messages, and notifies the processes that wait for it.
-- KEYS[1] meta  [2] box  [3] mail
-- ARGV[1] partitions  [2] any 8 bytes
-- Reply: {'ok', number of messages that were in it, 1 if it existed}, or a refusal.
local meta, box, mail = KEYS[1], KEYS[2], KEYS[3]
local b, foreign = open(box, mail)
if not b then return {'foreign', foreign} end
local existed = call('DEL', box, mail)
-- ':box:' is as long as ':meta'.
local name, channel = string.sub(box, #meta + 1), string.sub(meta, 1, -5) .. 'wake:'
local at = 1
while at <= #b.waiters do
  local process, ends
  process, ends, at = unpacked(WAITER, b.waiters, at)
  try('PUBLISH', channel .. process, pack(HINT_TO_READ, #name, name, 0))
end
return {'ok', b.last - b.from, existed > 0 and 1 or 0}
