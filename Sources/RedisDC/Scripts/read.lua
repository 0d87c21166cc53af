-- Reads the data of a lease: the item that it takes from a buffer, or the values that all parties brought to a meeting.
-- ARGV
--   [1] the slot's field: c:SID:SLOT
--   [2] not used
--   [3] the field of the claim's resource: t:NAME
--   [4] NUMBER of the claim
--   [5] first: the number of values of the meeting to skip, or nothing
-- Reply: {'values', {bytes, …}, first of the next page or 0 at the end}, or {'none'} if it is not held. A page ends with
--   the value that brings it to 256 KiB.
local slot_field, resource_field = ARGV[1], ARGV[3]
local name = string.sub(resource_field, 3)
local stored = call('HMGET', state, slot_field, resource_field)
local slot, resource = stored[1], stored[2]
if not slot or string.sub(slot, 1, 1) ~= HELD then return {'none'} end
local _, number, count, claim_tick, mode, priority, name_at = decode(CLAIM, slot)
if number ~= tonumber(ARGV[4]) then return {'none'} end
local note = string.sub(slot, name_at + #resource_field)
if mode == MEETING then
  local meeting = call('HGET', state, MEETING_FIELD .. name .. note)
  if not meeting then return {'none'} end
  local first, position, bytes, page = tonumber(ARGV[5] or 0), 0, 0, {}
  for party in string.gmatch(string.sub(meeting, #NEVER + 1), '%S+') do
    if position >= first then
      if bytes >= 262144 then return {'values', page, position} end
      local brought = call('HGET', values, BROUGHT_FIELD .. party)
      if not brought then return {'none'} end
      page[#page + 1], bytes = brought, bytes + #brought
    end
    position = position + 1
  end
  return {'values', page, 0}
end
if not resource then return {'none'} end
local kind, _, _, _, _, _, _, created = decode(RESOURCE, resource)
if kind ~= ITEMS or claim_tick < created then return {'none'} end
if mode == LEASE then
  -- The first read takes the first item that no claim has taken.
  local from, to = '[' .. ITEM_LINE .. name .. '\0', '(' .. ITEM_LINE .. name .. '\1'
  local line = call('ZRANGEBYLEX', index, from, to, 'LIMIT', '0', '1')[1]
  if not line then return {'none'} end
  note = string.sub(line, #name + 2)
  call('ZREM', index, line)
  local claim = encode(CLAIM, HELD, number, count, claim_tick, ITEM, priority)
  call('HSET', state, slot_field, claim .. resource_field .. note)
end
local item = call('HGET', values, ITEM_FIELD .. name .. note)
if item then return {'values', {item}, 0} end
return {'none'}
