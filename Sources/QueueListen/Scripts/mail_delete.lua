-- Deletes a mailbox with its messages, and notifies the processes that wait for it.
-- KEYS and ARGV as in mail_open
-- Reply: {'ok', number of messages that were in it, 1 if it existed}, or a refusal.
local existed = call('UNLINK', box, mail)
-- ':box:' is as long as ':meta'.
local name, channel = sub(box, #meta + 1), sub(meta, 1, -5) .. 'wake:'
local at = own_size + 1
while at <= #rest do
  local process, ends
  process, ends, at = unpacked(WAITER, rest, at)
  try('PUBLISH', channel .. process, pack(WAKE_UP_TO_READ, #name, name, 0))
end
return {'ok', last - from, existed > 0 and 1 or 0}
