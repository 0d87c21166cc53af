-- For requests that create no claim: answers a repeated one with the kept reply, and refuses an occupied slot.
if number == slot_number then return tonumber(string.sub(slot, 10)) or 1 end
if slot_state == WAITING or slot_state == HELD and string.sub(slot, 26, 26) ~= SOLE then return {'occupied'} end
-- A mutex's slot may say HELD after the release (release_mutex.lua). If the mutex names it, Redis has lost the release.
-- resource.lua compares them if the request is for the same mutex.
if slot_state == HELD and string.sub(slot, 28) ~= resource_field then
  local held = call('HGET', state, string.sub(slot, 28))
  local holder = string.sub(slot_field, 3) .. ':' .. format('%d', slot_number)
  if held and (string.sub(held, TAIL) == holder
    or call('ZSCORE', index, HOLDER_LINE .. string.sub(slot, 30) .. '\0' .. holder)) then
    return {'occupied'}
  end
end
