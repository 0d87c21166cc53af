-- Refuses a slot whose claim has not ended.
--
-- A mutex's slot may say HELD after the release (release_mutex.lua). If the mutex names it, Redis has lost the release.
-- If the request is for the resource that the claim is on, resource.lua compares them.
if slot_state == WAITING then return {'occupied'} end
if slot_state == HELD and string.sub(slot, 28) ~= resource_field then
  if string.sub(slot, 26, 26) ~= SOLE then return {'occupied'} end
  local held = call('HGET', state, string.sub(slot, 28))
  local holder = string.sub(slot_field, 3) .. ':' .. format('%d', slot_number)
  if held and (string.sub(held, TAIL) == holder
    or call('ZSCORE', index, HOLDER_LINE .. string.sub(slot, 30) .. '\0' .. holder)) then
    return {'occupied'}
  end
end
