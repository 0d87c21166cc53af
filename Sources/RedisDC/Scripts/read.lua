-- Made from Sources/RedisDC/Lua by scripts/lua.
local keys = KEYS
local partition_state, partition_index, partition_values = keys[1], keys[2], keys[4]
local arguments = ARGV
local slot_field, resource_field = arguments[1], arguments[3]
local sub = string.sub
local name = sub(resource_field, 3)
local call = redis.call
local stored = call('HMGET', partition_state, slot_field, resource_field)
local stored_slot, stored_resource = stored[1], stored[2]
if not stored_slot or sub(stored_slot, 1, 1) ~= 'h' then
  return {'none'}
end
local claim_state, claim_number, claim_count, claim_tick, claim_mode, claim_priority, claim_name_at =
  struct.unpack('<c1dddc1c1', stored_slot)
if claim_number ~= tonumber(arguments[4]) then
  return {'none'}
end
local note = sub(stored_slot, claim_name_at + #resource_field)
if claim_mode == 'e' then
  local page, next_first
  do
    local meeting_field = 'e:' .. name .. note
    local skipped = tonumber(arguments[5] or 0)
    local meeting = call('HGET', partition_state, meeting_field)
    if not meeting then
      return {'none'}
    end
    local position, bytes
    position, bytes, page, next_first = 0, 0, {}, 0
    for party in string.gmatch(sub(meeting, 9), '%S+') do
      if position >= skipped then
        if bytes >= 262144 then
          next_first = position
          break
        end
        local brought = call('HGET', partition_values, 'b:' .. party)
        if not brought then
          return {'none'}
        end
        page[#page + 1], bytes = brought, bytes + #brought
      end
      position = position + 1
    end
  end
  return {'values', page, next_first}
end
if not stored_resource then
  return {'none'}
end
local resource_kind, resource_family, resource_waiting, resource_free, resource_consumed, resource_permits,
  resource_limit, resource_created = struct.unpack('<c2c1ddddddd', stored_resource)
if resource_kind ~= 'if' or claim_tick < resource_created then
  return {'none'}
end
if claim_mode == 'l' then
  local line = call('ZRANGEBYLEX', partition_index, '[v' .. name .. '\0', '(v' .. name .. '\1', 'LIMIT', '0', '1')[1]
  if not line then
    return {'none'}
  end
  local note_2 = sub(line, #name + 2)
  call('ZREM', partition_index, line)
  claim_mode = 'i'
  call('HSET', partition_state, slot_field, struct.pack('<c1dddc1c1', claim_state, claim_number, claim_count,
    claim_tick, claim_mode, claim_priority) .. resource_field .. note_2)
  note = note_2
end
local item = call('HGET', partition_values, 'v:' .. name .. note)
if item then
  return {'values', {item}, 0}
end
return {'none'}
