-- Ends an expired session for every script, whatever the clock says later. Lists its claims for other_claim.lua, from
-- the last slots to the first. Deletes what else is left of it, and at last the session. Anyone may run it, without a
-- session.
-- KEYS: state, index, sessions, values
-- ARGV
--   [1] SID of the expired session
--   [2] below: the slots below this one, or empty for all
-- Reply: {'ok', below, {SID:SLOT:NUMBER, mode, NAME, …}}: run it again with this `below`, unless it is 0; {'alive'}:
--   the session has not expired.
local sid = ARGV[1]
local session = call('HGET', state, SESSION_FIELD .. sid)
if not session then
  call('ZREM', sessions, sid)
  return {'ok', 0, {}}
end
local expires, notices, slots = 0, 0, 0
if #session == SESSION_SIZE then
  expires, notices, slots = decode(SESSION, session)
end
if #session ~= SESSION_SIZE or slots ~= math.floor(slots) or slots < 0 or slots > 2 ^ 31 then
  -- A corrupt record. Until its slots are counted, `notices` is below 0.
  expires, notices, slots = 0, UNCOUNTED, 0
end
local is_recounted = notices < 0
if is_recounted then
  -- The slots are numbered without gaps, and those of a session are deleted from the last to the first, so they end where
  -- a whole page of 512 has none. A script looks at about 2,048 slots, and the next one continues.
  local left = 2048
  while left > 0 and notices < 0 do
    local slot = slots
    while slot < slots + 512 and not call('HGET', state, SLOT_FIELD .. sid .. ':' .. format('%d', slot)) do
      slot = slot + 1
    end
    left = left - (slot - slots + 1)
    if slot == slots + 512 then notices = 0 else slots = slots + 512 end
  end
  call('HDEL', state, '')
  call('HSET', state, SESSION_FIELD .. sid, encode(SESSION, expires, notices, slots))
  if notices < 0 then return {'ok', slots, {}} end
end
local time = call('TIME')
if expires > time[1] * 1000000 + time[2] then return {'alive'} end
local has_ended = expires == 0
expires = 0
local below = (ARGV[2] == '' or is_recounted) and slots or math.min(tonumber(ARGV[2]), slots)
local is_top = below == slots
local claims = {}
-- Pages of 128 slots, at most 1,024 slots in one script.
local left = 8
while below > 0 and #claims == 0 and left > 0 do
  left = left - 1
  local first = math.max(0, below - 128)
  local fields = {}
  for slot = first, below - 1 do fields[#fields + 1] = SLOT_FIELD .. sid .. ':' .. format('%d', slot) end
  local records = call('HMGET', state, unpack(fields))
  local done = {}
  for i = 1, #fields do
    local record = records[i]
    if record then
      local name = string.sub(record, 1, 1) ~= DONE and string.match(record, '^t:(%Z+)', 28)
      local number, mode = 0.5, nil
      if name then
        local _
        _, number, _, _, mode = decode(CLAIM, record)
      end
      -- A corrupt record is deleted. It must not make the sweep fail. A consumed permit whose arrival is not confirmed
      -- returns, like what is held.
      if name and number == math.floor(number) and number >= 0 and number < 2 ^ 53 then
        claims[#claims + 1] = string.sub(fields[i], 3) .. ':' .. format('%d', number)
        claims[#claims + 1] = mode
        claims[#claims + 1] = name
      else
        done[#done + 1] = fields[i]
      end
    end
  end
  if #done > 0 then call('HDEL', state, unpack(done)) end
  below = first
  if is_top and #claims == 0 then slots = first end
end
if slots == 0 then
  call('HDEL', state, SESSION_FIELD .. sid, ABOUT_FIELD .. sid)
  call('ZREM', sessions, sid)
elseif is_top or not has_ended then
  call('HDEL', state, '')
  call('HSET', state, SESSION_FIELD .. sid, encode(SESSION, expires, notices, slots))
end
return {'ok', below, claims}
