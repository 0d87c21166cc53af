-- Made from Sources/RedisDC/Lua by scripts/lua.
local partition_state, partition_index = KEYS[1], KEYS[2]
local arguments = ARGV
local sid, first = arguments[1], tonumber(arguments[2])
local call = redis.call
local stored_session = call('HGET', partition_state, 's:' .. sid)
if not (stored_session and #stored_session == 24) then
  return {'lost'}
end
local unpacked = struct.unpack
local session_expires, session_notices, session_slots = unpacked('<ddd', stored_session)
if session_expires == 0 then
  return {'lost', 'ended'}
end
local stop = math.min(session_slots, first + 200)
local fields = {}
local format = string.format
for slot = first, stop - 1 do
  fields[#fields + 1] = 'c:' .. sid .. ':' .. format('%d', slot)
end
local records = #fields > 0 and call('HMGET', partition_state, unpack(fields)) or {}
local page = {}
local sub = string.sub
for i = 1, #fields do
  local listed_state, listed_number, listed_tick, listed_count, listed_mode, listed_name = 'd', 0, 0, 0, '', ''
  repeat
    local slot_field = fields[i]
    local stored = records[i]
    if not stored or #stored < (sub(stored, 1, 1) == 'd' and 9 or 27) then
      break
    end
    if sub(stored, 1, 1) == 'd' then
      local slot_state, slot_number = unpacked('<c1d', stored)
      listed_number = slot_number
      listed_name = sub(stored, 10)
      break
    end
    local claim_state, claim_number, claim_count, claim_tick, claim_mode, claim_priority = unpacked('<c1dddc1c1',
      stored)
    local name = string.match(stored, '^t:(%Z+)', 28) or ''
    local is_claim
    repeat
      local id = sub(slot_field, 3) .. ':' .. format('%d', claim_number)
      if claim_state == 'w' then
        is_claim = call('ZSCORE', partition_index, 'q' .. name .. '\0' .. claim_priority .. struct.pack('>I8',
          claim_tick) .. id)
        break
      end
      if claim_state ~= 'h' or claim_mode ~= 'm' and claim_mode ~= 'k' then
        is_claim = true
        break
      end
      local is_holder
      repeat
        local resource = call('HGET', partition_state, 't:' .. name)
        if not resource then
          is_holder = false
          break
        end
        is_holder = sub(resource, 60) == id or call('ZSCORE', partition_index, 'h' .. name .. '\0' .. id)
      until true
      is_claim = is_holder
    until true
    listed_number, listed_tick, listed_mode = claim_number, claim_tick, claim_mode
    if claim_state ~= 'h' or claim_mode ~= 'k' then
      listed_count = claim_count
    end
    if is_claim then
      listed_state, listed_name = claim_state, name
    end
  until true
  if listed_state ~= 'd' or arguments[3] or string.find(listed_name, '^%l') then
    page[#page + 1] = first + i - 1
    page[#page + 1] = listed_number
    page[#page + 1] = listed_state
    page[#page + 1] = listed_tick
    page[#page + 1] = listed_count
    page[#page + 1] = listed_mode
    page[#page + 1] = listed_name
  end
end
return {'ok', stop < session_slots and stop or 0, page}
