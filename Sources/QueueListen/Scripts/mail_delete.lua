-- Deletes a mailbox with its messages, and notifies the processes that wait for it.
-- KEYS[1] meta  [2] box  [3] mail
-- ARGV[1] number of partitions
-- Reply: {'ok', number of messages that were in it, 1 if it existed}, or a refusal.
local meta, box, mail = KEYS[1], KEYS[2], KEYS[3]
local b, refusal = open(box, mail, tonumber(ARGV[1]), NO_TAG)
if not b then return refusal end
local existed = call('UNLINK', box, mail)
-- ':box:' is as long as ':meta'.
local name, channel = sub(box, #meta + 1), sub(meta, 1, -5) .. 'wake:'
local at = b.own_size + 1
while at <= #b.rest do
  local process, ends
  process, ends, at = unpacked(WAITER, b.rest, at)
  try('PUBLISH', channel .. process, pack(HINT_TO_READ, #name, name, 0))
end
return {'ok', b.last - b.from, existed > 0 and 1 or 0}
