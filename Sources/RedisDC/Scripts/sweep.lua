-- Made from Sources/RedisDC/Lua by scripts/lua.
local partition_state, partition_sessions = KEYS[1], KEYS[3]
local sid, wanted_below = ARGV[1], ARGV[2]
local call = redis.call
local stored = call('HGET', partition_state, 's:' .. sid)
if not stored then
  call('ZREM', partition_sessions, sid)
  return {'ok', 0, {}}
end
local session_expires, session_notices, session_slots = 0, -4503599627370496, 0
if #stored == 24 then
  session_expires, session_notices, session_slots = struct.unpack('<ddd', stored)
  if session_slots ~= math.floor(session_slots) or session_slots < 0 or session_slots > 2147483648 then
    session_expires = 0
    session_notices = -4503599627370496
    session_slots = 0
  end
end
local is_recounted = session_notices < 0
local format = string.format
if is_recounted then
  do
    local left = 2048
    while left > 0 and session_notices < 0 do
      local slot, stop = session_slots, session_slots + 512
      while slot < stop and not call('HGET', partition_state, 'c:' .. sid .. ':' .. format('%d', slot)) do
        slot = slot + 1
      end
      left = left - (slot - session_slots + 1)
      if slot == stop then
        session_notices = 0
      else
        session_slots = stop
      end
    end
  end
  call('HDEL', partition_state, '')
  call('HSET', partition_state, 's:' .. sid, struct.pack('<ddd', session_expires, session_notices, session_slots))
  if session_notices < 0 then
    return {'ok', session_slots, {}}
  end
end
local now
do
  local time = call('TIME')
  now = time[1] * 1000000 + time[2]
end
if session_expires > now then
  return {'alive'}
end
local has_ended = session_expires == 0
session_expires = 0
local below = session_slots
if wanted_below ~= '' and not is_recounted then
  below = math.min(tonumber(wanted_below), session_slots)
end
local is_top = below == session_slots
local claims, left = {}, 8
local sub = string.sub
while below > 0 and #claims == 0 and left > 0 do
  left = left - 1
  local first = math.max(0, below - 128)
  do
    local fields = {}
    for slot = first, below - 1 do
      fields[#fields + 1] = 'c:' .. sid .. ':' .. format('%d', slot)
    end
    local records = call('HMGET', partition_state, unpack(fields))
    local done = {}
    for i = 1, #fields do
      if records[i] then
        local is_claim
        repeat
          local slot_field = fields[i]
          local stored_2 = records[i]
          local name = sub(stored_2, 1, 1) ~= 'd' and string.match(stored_2, '^t:(%Z+)', 28)
          if not name then
            is_claim = false
            break
          end
          local claim_state, claim_number, claim_count, claim_tick, claim_mode = struct.unpack('<c1dddc1c1', stored_2)
          local number = claim_number
          if not (number == math.floor(number) and number >= 0 and number < 9007199254740992) then
            is_claim = false
            break
          end
          claims[#claims + 1] = sub(slot_field, 3) .. ':' .. format('%d', number)
          claims[#claims + 1] = claim_mode
          claims[#claims + 1] = name
          is_claim = true
        until true
        if not is_claim then
          done[#done + 1] = fields[i]
        end
      end
    end
    if #done > 0 then
      call('HDEL', partition_state, unpack(done))
    end
  end
  below = first
  if is_top and #claims == 0 then
    session_slots = first
  end
end
if session_slots == 0 then
  call('HDEL', partition_state, 's:' .. sid, 'i:' .. sid)
  call('ZREM', partition_sessions, sid)
  local swept = call('HGET', partition_state, 'swept') or '0'
  if #swept > 4000 then
    local dropped, rest = string.match(swept, '^%d+ %w+:(%d+)(.*)$')
    swept = dropped and dropped .. rest or format('%d', now)
  end
  call('HSET', partition_state, 'swept', swept .. format(' %s:%d', sid, now))
elseif is_top or not has_ended then
  call('HDEL', partition_state, '')
  call('HSET', partition_state, 's:' .. sid, struct.pack('<ddd', session_expires, session_notices, session_slots))
end
return {'ok', below, claims}
