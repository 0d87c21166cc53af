-- Returns the state of a mailbox. Changes nothing.
-- KEYS[1] meta  [2] box  [3] mail
-- ARGV[1] partitions  [2] any 8 bytes
-- Reply: {} if it does not exist, or {'ok', ms now, epoch, last, index and tag of the last message that is gone,
--     bytes, its own limits or '', ms until it is deleted if nobody uses it or -1, {device, index, tag, ms when last
--     seen, …}, {registered process, ms until when, …}}, or a refusal.
local b, foreign = open(KEYS[2], KEYS[3])
if not b then return {'foreign', foreign} end
if b.is_new and b.last == 0 then return {} end
local devices, waiters, at = {}, {}, 1
while at <= #b.devices do
  local name, index, tag, seen, polls
  name, index, tag, seen, polls, at = unpacked(DEVICE, b.devices, at)
  for _, value in ipairs({name, format('%.0f', index), tag, format('%.0f', seen)}) do devices[#devices + 1] = value end
end
at = 1
while at <= #b.waiters do
  local process, ends
  process, ends, at = unpacked(WAITER, b.waiters, at)
  waiters[#waiters + 1] = process
  waiters[#waiters + 1] = format('%.0f', ends)
end
return {'ok', format('%.0f', now), b.epoch, format('%.0f', b.last), format('%.0f', b.from), b.from_tag,
  format('%.0f', b.sum - b.from_sum - b.hollow), b.limits or '', call('PTTL', b.box), devices, waiters}
