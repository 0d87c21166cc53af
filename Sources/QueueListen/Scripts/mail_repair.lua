-- Repairs a mailbox that a send has found damaged: after tampering, or after Redis has lost data. Every cursor of a
-- mailbox that gets a new epoch is answered with 'reset'. Followed by mail_rewind and mail_renew.
-- KEYS as in mail_open
-- ARGV[1] as in mail_open  [2] KNOWN, or empty
-- Reply: {'ok'}, or a refusal.

-- epoch, index and tag of the last message that was confirmed to the sender
local KNOWN, known = '<c8dc8', ARGV[2]
if known ~= '' then
  local known_epoch, index, tag = unpacked(KNOWN, known)
  if index > 0 and known_epoch == epoch then
    local found = index == last and last_tag or index == from and from_tag
    if index < last and index > from then
      local kind, its_index, its_sum, its_sent
      kind, its_index, its_sum, its_sent, found =
        unpacked(HEAD, call('LINDEX', mail, format('%d', 2 * (index - from - 1))))
    elseif index < from then
      local history = call('HGET', box, 'h') or ''
      local at = #history - 8 * (from - index) - 7
      -- Further back than the history reaches, there is nothing to compare with.
      found = at > 0 and sub(history, -8) == from_tag and sub(history, at, at + 7) or tag
    end
    if found ~= tag then epoch, is_new = new_epoch, true end
  end
end
-- A mailbox that does not exist is created by the send itself.
if last == 0 then return {'ok'} end
call('HSET', box, 'm', pack(STATE, partitions, epoch, last, last_tag, from, from_tag, last_sum, from_sum, hollow,
  keyed, due, own_size) .. rest)
if is_partition_new then call('HSET', meta, 'partitions', partitions .. LAYOUT) end
