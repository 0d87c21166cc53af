-- Writes the slot of an ended claim, and tells an owner that has lost it by force.
local wakeups
local sessions_read = {}
if ended_slot then
  hset[#hset + 1] = slot_field
  hset[#hset + 1] = ended_slot
  if by_other then
    wakeups = {[sid] = format('%d', claim_number) .. ' ' .. ARGV[2]}
    if session and #session == SESSION_SIZE then
      local expires, notices, slots = decode(SESSION, session)
      sessions_read[sid] = {expires = expires, notices = notices + 1, slots = slots, is_changed = true}
    end
  end
else
  hdel[#hdel + 1] = slot_field
end
local now, session_field, session_record
local reply = kind == BROKEN and waiting > 0 and {'more', 1} or 1
