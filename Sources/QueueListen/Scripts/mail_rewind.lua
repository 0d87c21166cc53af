-- The part of a script that reads the devices. Preceded by mail_open. In a mailbox that has a new epoch, every device
-- is unaware of the loss: mail_listen notifies it, and deletes nothing before it has acknowledged a new position.
local UNAWARE = -1
local devices = call('HGET', box, 'd') or ''
if is_new then
  local all, at = '', 1
  while at <= #devices do
    local name, index, tag, seen, polls
    name, index, tag, seen, polls, at = unpacked(DEVICE, devices, at)
    all = all .. pack(DEVICE, #name, name, UNAWARE, NO_TAG, seen, #polls, polls)
  end
  devices = all
end
