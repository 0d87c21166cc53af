-- Returns the state of a mailbox. Changes nothing.
-- KEYS[1] meta  [2] box  [3] mail
-- ARGV[1] number of partitions
-- Reply: {} if it does not exist, or {'ok', ms now, epoch, last, index of the last message that is gone, bytes, its own
--     LIMITS or '', ms until it is deleted if nobody uses it or -1, number of registered processes, {device, index, tag,
--     ms when last seen, …}}, or a refusal.
local b, refusal = open(KEYS[2], KEYS[3], tonumber(ARGV[1]), NO_TAG)
if not b then return refusal end
if b.is_new and b.last == 0 then return {} end
local devices, packed, at = {}, call('HGET', b.box, 'd') or '', 1
if b.is_new then packed = '' end
while at <= #packed do
  local name, index, tag, seen, polls
  name, index, tag, seen, polls, at = unpacked(DEVICE, packed, at)
  for _, value in ipairs({name, format('%d', index), tag, format('%d', seen)}) do devices[#devices + 1] = value end
end
return {'ok', format('%d', now), b.epoch, format('%d', b.last), format('%d', b.from),
  format('%d', b.sum - b.from_sum - b.hollow), sub(b.rest, 1, b.own_size), call('PTTL', b.box),
  (#b.rest - b.own_size) / WAITER_SIZE, devices}
