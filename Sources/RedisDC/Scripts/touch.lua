-- Made from Sources/RedisDC/Lua by scripts/lua.
local partition_state, partition_index = KEYS[1], KEYS[2]
local arguments = ARGV
local sid = arguments[1]
local call = redis.call
local stored = call('HGET', partition_state, 's:' .. sid)
if not (stored and #stored == 24) then
  return {'lost'}
end
local unpacked = struct.unpack
local session_expires = unpacked('<ddd', stored)
local now
do
  local time = call('TIME')
  now = time[1] * 1000000 + time[2]
end
if session_expires <= now then
  return {'lost'}
end
local reply = {'ok'}
local sub = string.sub
for i = 2, #arguments, 3 do
  local slot_text = arguments[i]
  local is_there
  repeat
    local number_text = arguments[i + 1]
    local kind = arguments[i + 2]
    if slot_text == '' then
      is_there = true
      break
    end
    if kind ~= 'h' then
      local is_lost
      repeat
        local is_end = kind == 'e'
        local stored_2 = call('HGET', partition_state, 'c:' .. sid .. ':' .. slot_text)
        local number = tonumber(number_text)
        local slot_state, slot_number = 'd', 0
        if stored_2 then
          slot_state, slot_number = unpacked('<c1d', stored_2)
        end
        if slot_number ~= number then
          is_lost = slot_number < number
          break
        end
        if not is_end or slot_state == 'd' then
          is_lost = false
          break
        end
        local has_ended
        repeat
          local id = sid .. ':' .. slot_text .. ':' .. number_text
          local mode = sub(stored_2, 26, 26)
          if sub(stored_2, 1, 1) ~= 'h' or mode ~= 'm' and mode ~= 'k' then
            has_ended = false
            break
          end
          local resource = call('HGET', partition_state, sub(stored_2, 28))
          has_ended = (not resource or sub(resource, 60) ~= id) and not call('ZSCORE', partition_index, 'h' ..
            sub(stored_2, 30) .. '\0' .. id)
        until true
        is_lost = not has_ended
      until true
      is_there = not is_lost
      break
    end
    local stored_2 = call('HGET', partition_state, 'c:' .. sid .. ':' .. slot_text)
    if not stored_2 or #stored_2 < 9 then
      is_there = false
      break
    end
    local slot_state, slot_number = unpacked('<c1d', stored_2)
    is_there = slot_state == 'h' and slot_number == tonumber(number_text)
  until true
  reply[#reply + 1] = is_there and 1 or 0
end
call('HDEL', partition_state, '')
call('HSET', partition_state, 's:' .. sid, stored)
return reply
