-- Repairs a mailbox that a send has found damaged: after tampering, or after Redis has lost data. Every cursor of a
-- mailbox that gets a new epoch is answered with 'reset'.
-- KEYS[1] meta  [2] box  [3] mail
-- ARGV[1] number of partitions  [2] a new epoch, 8 random bytes  [3] epoch, index and tag of the last message that was
--     confirmed to the sender as '<c8dc8', or empty
-- Reply: {'ok'}, or a refusal.
local KNOWN = '<c8dc8'
local meta, box, mail, partitions, new_epoch, known = KEYS[1], KEYS[2], KEYS[3], tonumber(ARGV[1]), ARGV[2], ARGV[3]
local b, refusal = open(box, mail, partitions, new_epoch)
if not b then return refusal end
if known ~= '' then
  local epoch, index, tag = unpacked(KNOWN, known)
  if index > b.from and epoch == b.epoch then
    local found = index == b.last and b.tag
    if index < b.last then
      local kind, its_index, its_sum, its_sent
      kind, its_index, its_sum, its_sent, found =
        unpacked(HEAD, call('LINDEX', mail, format('%d', 2 * (index - b.from - 1))))
    end
    if found ~= tag then b.epoch, b.is_new = new_epoch, true end
  end
end
-- A mailbox that does not exist is created by the send itself.
if b.last == 0 then return {'ok'} end
call('HSET', box, 'm', pack(STATE, partitions, b.epoch, b.last, b.tag, b.from, b.from_tag, b.sum, b.from_sum, b.hollow,
  b.keyed, b.due, b.own_size) .. b.rest)
if is_partition_new then call('HSET', meta, 'partitions', partitions) end
if b.is_new then
  -- The devices belong to its predecessor.
  call('HDEL', box, 'd')
  -- ':box:' is as long as ':meta'.
  local name = sub(box, #meta + 1)
  try('PUBLISH', sub(meta, 1, -5) .. 'wake:all', pack(HINT_TO_READ, #name, name, 0))
end
return {'ok'}
