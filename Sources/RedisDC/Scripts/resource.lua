-- Reads the resource, and creates it if it does not exist.
-- ARGV
--   [4] kind: two letters; one if [5] is empty, for any policy
--   [5] permits with which a missing resource is created; empty: it must exist; nothing: 1
-- Refusals: {'missing'}, {'gone'} (destroyed, and not cleared yet), {'broken'}, {'conflict', kind, limit} (of the
--   existing resource), {'family', FAMILY}
local requested = ARGV[5]
local resource = call('HGET', state, resource_field)
local kind, family, waiting, free, consumed, permits, limit, created, signalled
local tail = ''
if resource then
  kind, family, waiting, free, consumed, permits, limit, created, signalled = decode(RESOURCE, resource)
  if slot_state == HELD then
    local holder = string.sub(slot_field, 3) .. ':' .. format('%d', slot_number)
    if string.sub(slot, 26, 26) ~= SOLE or string.sub(resource, TAIL) == holder
      or family == GROUPS and call('ZSCORE', index, HOLDER_LINE .. string.sub(resource_field, 3) .. '\0' .. holder) then
      return {'occupied'}
    end
  end
  if kind ~= ARGV[4] then
    if kind == DESTROYED then return {'gone'} end
    if kind == BROKEN then return {'broken'} end
    if string.sub(kind, 1, 1) ~= ARGV[4] then return {'conflict', kind, limit} end
  end
  if requested and requested ~= '' then
    requested = requested + 0
    if permits ~= requested and limit ~= requested then return {'conflict', kind, limit} end
  end
  -- A member changes the family to GROUPS.
  if family ~= FAMILY and (FAMILY ~= GROUPS or ARGV[6] ~= MEMBER) then return {'family', family} end
elseif requested == '' then
  return {'missing'}
else
  kind, family, permits = ARGV[4], FAMILY, tonumber(requested or 1)
  waiting, free, consumed, limit, signalled = 0, permits, 0, permits, 0
end
