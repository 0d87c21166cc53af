-- Returns the state of a mailbox. Changes nothing.
-- KEYS and ARGV as in mail_open
-- Reply: {} if it does not exist, or {'ok', ms now, epoch, last, index of the last message that is gone, bytes, its own
--     LIMITS or '', ms until it is deleted if nobody uses it or -1, number of processes whose registration has not
--     expired, {device, index, tag, ms when last seen, …}}, or a refusal.
if is_new and last == 0 then return {} end
local devices, packed, at = {}, call('HGET', box, 'd') or '', 1
if is_new then packed = '' end
while at <= #packed do
  local name, index, tag, seen, polls
  name, index, tag, seen, polls, at = unpacked(DEVICE, packed, at)
  for _, value in ipairs({name, format('%d', math.max(index, 0)), tag, format('%d', seen)}) do devices[#devices + 1] = value end
end
local waiters, waiter_at = 0, own_size + 1
while waiter_at <= #rest do
  local process, ends
  process, ends, waiter_at = unpacked(WAITER, rest, waiter_at)
  if ends > now then waiters = waiters + 1 end
end
return {'ok', format('%d', now), epoch, format('%d', last), format('%d', from),
  format('%d', last_sum - from_sum - hollow), sub(rest, 1, own_size), call('PTTL', box),
  waiters, devices}
