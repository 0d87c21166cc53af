-- Forgets a device, as if it had not been seen for too long: no message is kept for it any more. Those that were kept
-- for it alone are deleted by the next listen of another device.
-- KEYS as in mail_open
-- ARGV[1] as in mail_open  [2] device  [3] ms when last seen: a device with another one is not forgotten; '' for any
-- Reply: {'ok', 1 if the mailbox had the device, else 0}, or a refusal.
if is_new then return {'ok', 0} end
local devices, kept, at = call('HGET', box, 'd') or '', '', 1
while at <= #devices do
  local start, name, index, tag, seen, polls = at, nil, nil, nil, nil, nil
  name, index, tag, seen, polls, at = unpacked(DEVICE, devices, at)
  if name ~= ARGV[2] or ARGV[3] ~= '' and seen ~= tonumber(ARGV[3]) then kept = kept .. sub(devices, start, at - 1) end
end
if #kept == #devices then return {'ok', 0} end
-- The first write removes something: Redis allows that at maxmemory.
call('HDEL', box, '')
call('HSET', box, 'd', kept)
return {'ok', 1}
