-- Made from Sources/RedisDC/Lua by scripts/lua.
local state = KEYS[1]
local arguments = ARGV
local sid, slot_number, claim_number = arguments[1], arguments[2], arguments[3]
local slot_field = 'c:' .. sid .. ':' .. slot_number
local call = redis.call
local stored = call('HMGET', state, 's:' .. sid, slot_field)
local stored_session, stored_slot = stored[1], stored[2]
if stored_session and #stored_session == 24 and struct.unpack('<d', stored_session) > 0 then
  return {'alive'}
end
if not stored_slot or #stored_slot < 9 then
  return 0
end
local slot_state, slot_number_2 = struct.unpack('<c1d', stored_slot)
if slot_number_2 ~= tonumber(claim_number) then
  return 0
end
call('HDEL', state, slot_field)
call('HSET', state, 'x:' .. sid .. ':' .. slot_number .. ':' .. claim_number, stored_slot)
return 1
