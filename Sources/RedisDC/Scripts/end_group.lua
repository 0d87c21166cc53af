-- Ends a claim on a resource that groups use.
-- A member of a destroyed resource may outlive it; the new one of the same name may have no groups.
if family == PERMITS and mode ~= MEMBER then return {'family', family} end
local note = string.sub(slot, name_at + #resource_field)
local hset, hdel, zadd, zrem = {}, {}, {}, {}
local grants_wanted = false
if claim_state == WAITING then
  zrem[1] = QUEUE_LINE .. name .. '\0' .. priority .. encode(TICK, claim_tick) .. claim_id
  if mode == MEMBER then zrem[2] = MEMBER_LINE .. name .. note .. '\0' .. claim_id end
  if resource then waiting, grants_wanted = waiting - 1, true end
else
  local is_current = resource and claim_tick >= created
  -- A slot of a mutex may say HELD without being held (release_mutex.lua): here the line says the truth.
  local holder_line = HOLDER_LINE .. name .. '\0' .. claim_id
  if claim_state == HELD and call('ZREM', index, holder_line) == 0 then is_current = false end
  if claim_state == GRANTED and is_current then consumed = consumed - count end
  if mode == MEMBER then
    -- The last member to leave releases the permit of the group.
    local group_field = GROUP_FIELD .. name .. note
    local group = call('HGET', state, group_field)
    local members, group_created = 0, claim_tick + 1
    if group then members, group_created = decode(GROUP, group) end
    if group_created <= claim_tick and members > 1 then
      hset[1], hset[2] = group_field, encode(GROUP, members - 1, group_created)
    elseif group_created <= claim_tick then
      hdel[1] = group_field
      count = 1
    end
  end
  if is_current then free, grants_wanted = free + count, true end
end
