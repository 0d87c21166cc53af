-- Made from Sources/RedisDC/Lua by scripts/lua.
local state, index = KEYS[1], KEYS[2]
local arguments = ARGV
local name, wanted, after = arguments[1], arguments[3], arguments[4]
local call = redis.call
local stored = call('HGET', state, 't:' .. name)
if not stored then
  return {}
end
if #stored < 59 then
  return {'damaged'}
end
local resource_kind, resource_family, resource_waiting, resource_free, resource_consumed, resource_permits,
  resource_limit, resource_created, resource_signalled = struct.unpack('<c2c1ddddddd', stored)
local now
do
  local time = call('TIME')
  now = time[1] * 1000000 + time[2]
end
local sub = string.sub
local named_holder = resource_kind == 'mf' and resource_family == 'p' and sub(stored, 60) or ''
local holder_count = named_holder ~= '' and 1 or call('ZLEXCOUNT', index, '[h' .. name .. '\0', '(h' .. name .. '\1')
local page_size = math.min(tonumber(arguments[2]), 128)
local holders, waiters, last_holder, last_waiter, ids = {}, {}, '', '', nil
if not wanted or wanted == 'h' then
  local from = wanted and '(' .. after or '[h' .. name .. '\0'
  do
    local claim_at = #name + 3
    local ids_2 = call('ZRANGEBYLEX', index, from, '(h' .. name .. '\1', 'LIMIT', '0', page_size)
    local last = #ids_2 == page_size and ids_2[page_size] or ''
    for i = 1, #ids_2 do
      ids_2[i] = sub(ids_2[i], claim_at)
    end
    ids, last_holder = ids_2, last
  end
  if named_holder ~= '' then
    ids = {named_holder}
  end
  local claims = {}
  for i = 1, #ids do
    local sid, slot = string.match(ids[i], '^(%w+):(%d+):')
    local fields = call('HMGET', state, 'c:' .. sid .. ':' .. slot, 'i:' .. sid)
    local stored_2 = fields[1]
    if stored_2 and sub(stored_2, 1, 1) ~= 'd' then
      local claim_state, claim_number, claim_count, claim_tick = struct.unpack('<c1dddc1c1', stored_2)
      if not resource_created or claim_tick >= resource_created then
        claims[#claims + 1] = ids[i]
        claims[#claims + 1] = claim_count
        claims[#claims + 1] = claim_tick
        claims[#claims + 1] = fields[2] or ''
      end
    end
  end
  holders = claims
end
if not wanted or wanted == 'q' then
  local from = wanted and '(' .. after or '[q' .. name .. '\0'
  do
    local claim_at = #name + 12
    local ids_2 = call('ZRANGEBYLEX', index, from, '(q' .. name .. '\1', 'LIMIT', '0', page_size)
    local last = #ids_2 == page_size and ids_2[page_size] or ''
    for i = 1, #ids_2 do
      ids_2[i] = sub(ids_2[i], claim_at)
    end
    ids, last_waiter = ids_2, last
  end
  local claims = {}
  for i = 1, #ids do
    local sid, slot = string.match(ids[i], '^(%w+):(%d+):')
    local fields = call('HMGET', state, 'c:' .. sid .. ':' .. slot, 'i:' .. sid)
    local stored_2 = fields[1]
    if stored_2 and sub(stored_2, 1, 1) ~= 'd' then
      local claim_state, claim_number, claim_count, claim_tick = struct.unpack('<c1dddc1c1', stored_2)
      claims[#claims + 1] = ids[i]
      claims[#claims + 1] = claim_count
      claims[#claims + 1] = claim_tick
      claims[#claims + 1] = fields[2] or ''
    end
  end
  waiters = claims
end
local signalled = resource_kind == 'mf' and 0 or resource_signalled
return {now, resource_kind, resource_permits, resource_limit, resource_free, resource_waiting, resource_created,
  signalled, resource_consumed, holder_count, holders, waiters, last_holder, last_waiter}
