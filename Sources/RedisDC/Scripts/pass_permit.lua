-- The second half of pass.lua, when the resource that gets the permit is known.
local _, _, count, claim_tick, mode, _, name_at = decode(CLAIM, slot)
local other_field, item = ARGV[7], ARGV[8]
local other_name = string.sub(other_field, 3)
if string.match(slot, '^%Z+', name_at) ~= other_field or not item and mode ~= ITEM then return {'none'} end
local other = call('HGET', state, other_field)
if not other then return {'gone'} end
local other_kind, other_family, other_waiting, other_free, other_consumed, other_permits, other_limit, other_created,
  other_signalled = decode(RESOURCE, other)
if claim_tick < other_created or other_kind == DESTROYED then return {'gone'} end
-- A deletion first, after which Redis allows the writes also at maxmemory. A new item it must refuse.
if not item then call('HDEL', state, '') end
if not now then
  local time = call('TIME')
  now = time[1] * 1000000 + time[2]
end
tick = decode(NUMBER, call('HGET', state, 'clock') or NEVER) + 1
if not (tick >= now and tick < MAX_TICK) then tick = now end
created = created or tick
local hset, hdel, vdel, zadd, zrem = {}, {}, {}, {}, {HOLDER_LINE .. other_name .. '\0' .. claim_id}
if item then
  local item_key = name .. '\0' .. encode(TICK, tick)
  call('HSET', values, ITEM_FIELD .. item_key, item)
  zadd[1], zadd[2] = '0', ITEM_LINE .. item_key
else
  vdel[1] = ITEM_FIELD .. string.sub(slot, name_at + 2)
end
hset[1], hset[2] = other_field, encode(RESOURCE, other_kind, other_family, other_waiting, other_free,
  other_consumed + count, other_permits, other_limit, other_created, other_signalled)
hset[3], hset[4] = slot_field, encode(SLOT, DONE, number)
free, signalled = free + count, signalled + count
local sessions_read = {}
local wakeups
local grants_wanted, reply = true, 1
