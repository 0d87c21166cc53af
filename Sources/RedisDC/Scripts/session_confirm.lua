-- Confirms the arrival of consumed permits whose slots have not been reused: the end of the session does not return
-- them.
-- ARGV
--   [1] SID
--   [2] SLOT:NUMBER, …, separated by spaces, at most 4,000 bytes
-- Reply: 1
if #ARGV[2] > 4000 then return redis.error_reply('RDC more than 4000 bytes of confirmations in one request') end
-- Changes nothing. After a write that Redis allows at maxmemory, it allows the script's other writes too.
call('HDEL', state, '')
for slot_text, number in string.gmatch(ARGV[2], '(%d+):(%d+)') do
  local slot_field = SLOT_FIELD .. ARGV[1] .. ':' .. slot_text
  local slot = call('HGET', state, slot_field)
  if slot then
    local slot_state, slot_number = decode(SLOT, slot)
    if slot_state == GRANTED and slot_number == tonumber(number) then
      call('HSET', state, slot_field, encode(SLOT, DONE, slot_number))
    end
  end
end
return 1
