-- Reads the data of a lease: an item of a buffer, or the values that all parties brought to a meeting at an exchanger.

-- The bytes after which a page of values ends, with the value that reaches them: 256 KiB.
local MAX_PAGE_BYTES = 262144

-- Returns a page of the values of a meeting after the first `skipped` ones, and the number of values that the next page
-- must skip, or 0 at the end. Refuses if a value is missing.
local function read_meeting_values(partition, meeting_field, skipped)
  local meeting = redis.call('HGET', partition.state, meeting_field)
  if not meeting then refuse({'none'}) end
  local position, bytes, page, next_skipped = 0, 0, {}, 0
  -- The parties follow the number of those that may still read.
  for party in string.gmatch(string.sub(meeting, #NEVER + 1), '%S+') do
    if position >= skipped then
      if bytes >= MAX_PAGE_BYTES then
        next_skipped = position
        break
      end
      local brought = redis.call('HGET', partition.values, BROUGHT_FIELD .. party)
      if not brought then refuse({'none'}) end
      page[#page + 1], bytes = brought, bytes + #brought
    end
    position = position + 1
  end
  return page, next_skipped
end

-- Takes the first item that no claim has taken, for a claim whose mode becomes ITEM. Returns the note of the claim:
-- what follows the name in the field of the item.
local function take_item(partition, slot_field, claim, resource_field, name)
  local line = redis.call('ZRANGEBYLEX', partition.index, first_line(ITEM_LINE, name), after_last_line(ITEM_LINE, name),
    'LIMIT', '0', '1')[1]
  if not line then refuse({'none'}) end
  local note = string.sub(line, #name + 2)
  redis.call('ZREM', partition.index, line)
  claim.mode = ITEM
  redis.call('HSET', partition.state, slot_field, Claim.write(claim) .. resource_field .. note)
  return note
end

-- Reads the data of a lease: the item that it takes from a buffer, or the values that all parties brought to a meeting.
-- KEYS: state, index, sessions, values
-- ARGV
--   [1] the slot's field: c:SID:SLOT
--   [2] not used
--   [3] the field of the claim's resource: t:NAME
--   [4] NUMBER of the claim
--   [5] first: the number of values of the meeting to skip, or nothing
-- Reply: {'values', {bytes, …}, first of the next page or 0 at the end}, or {'none'} if it is not held.
function entry.read(keys, arguments)
  local partition = Partition.new({state = keys[1], index = keys[2], values = keys[4]})
  local slot_field, resource_field = arguments[1], arguments[3]
  local name = string.sub(resource_field, 3)
  local stored = redis.call('HMGET', partition.state, slot_field, resource_field)
  local stored_slot, stored_resource = stored[1], stored[2]
  if not stored_slot or slot_state(stored_slot) ~= HELD then return {'none'} end
  local claim = Claim.read(stored_slot)
  if claim.number ~= tonumber(arguments[4]) then return {'none'} end
  local note = string.sub(stored_slot, claim.name_at + #resource_field)
  if claim.mode == MEETING then
    local page, next_first = read_meeting_values(partition, MEETING_FIELD .. name .. note, tonumber(arguments[5] or 0))
    return {'values', page, next_first}
  end
  if not stored_resource then return {'none'} end
  local resource = Resource.read(stored_resource)
  if resource.kind ~= ITEMS or claim.tick < resource.created then return {'none'} end
  -- The first read takes an item.
  if claim.mode == LEASE then note = take_item(partition, slot_field, claim, resource_field, name) end
  local item = redis.call('HGET', partition.values, ITEM_FIELD .. name .. note)
  if item then return {'values', {item}, 0} end
  return {'none'}
end
