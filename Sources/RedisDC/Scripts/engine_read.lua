-- Reads the data of a lease: the item that it takes from a buffer, or the values that all parties brought to a meeting.
-- ARGV
--   [6] REQ of the claim
-- Reply: {'ok', {bytes, …}}, {'none'} if it is not held, or a refusal.
local claim_field = CLAIM_FIELD .. sid .. ':' .. ARGV[6]
local claim = call('HGET', state, claim_field)
local claim_state, mode, priority, count, claim_tick, name_at, note = ENDED, nil, nil, nil, nil, nil, nil
if claim and claim ~= ENDED then
  claim_state, mode, priority, count, claim_tick, name_at = decode(CLAIM, claim)
  if mode ~= LEASE then note = string.sub(claim, string.find(claim, '\0', name_at, true) or #claim + 1) end
end
reply = {'none'}
if claim_state == HELD and mode == MEETING then
  local brought = call('HGET', state, MEETING_FIELD .. name .. note)
  if brought then reply = {'ok', cmsgpack.unpack(brought)} end
elseif claim_state == HELD and kind == ITEMS and claim_tick > created then
  if mode == LEASE then
    -- The first read takes the first item that no claim has taken.
    local from, to = '[' .. ITEM_LINE .. name .. '\0', '(' .. ITEM_LINE .. name .. '\1'
    local line = call('ZRANGEBYLEX', index, from, to, 'LIMIT', '0', '1')[1]
    if line then
      -- The note follows ITEM_LINE and the name.
      note = string.sub(line, #name + 2)
      zrem[#zrem + 1] = line
      hset[#hset + 1] = claim_field
      hset[#hset + 1] = encode(CLAIM, claim_state, ITEM, priority, count, claim_tick) .. name .. note
    end
  end
  local item = note and call('HGET', state, ITEM_FIELD .. name .. note)
  if item then reply = {'ok', {item}} end
end
