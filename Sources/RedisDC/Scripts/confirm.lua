-- Made from Sources/RedisDC/Lua by scripts/lua.
local state, sid, confirmations = KEYS[1], ARGV[1], ARGV[2]
if #confirmations > 4000 then
  return redis.error_reply('RDC more than 4000 bytes of confirmations in one request')
end
local call = redis.call
call('HDEL', state, '')
for slot_text, number in string.gmatch(confirmations, '(%d+):(%d+)') do
  local slot_field = 'c:' .. sid .. ':' .. slot_text
  local stored = call('HGET', state, slot_field)
  if stored then
    local slot_state, slot_number = struct.unpack('<c1d', stored)
    if slot_state == 'g' and slot_number == tonumber(number) then
      call('HSET', state, slot_field, struct.pack('<c1d', 'd', slot_number))
    end
  end
end
return 1
