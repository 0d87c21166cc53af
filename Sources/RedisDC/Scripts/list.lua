-- Made from Sources/RedisDC/Lua by scripts/lua.
local keys = KEYS
local state, index, sessions = keys[1], keys[2], keys[3]
local now
local call = redis.call
do
  local time = call('TIME')
  now = time[1] * 1000000 + time[2]
end
local page = call('HSCAN', state, ARGV[1], 'MATCH', '[tx]:*', 'COUNT', '200')
local fields = page[2]
local rows, damaged = {}, {}
local sub = string.sub
for i = 1, #fields, 2 do
  local field, stored = fields[i], fields[i + 1]
  local name = sub(field, 3)
  if sub(field, 1, 2) == 'x:' then
    damaged[#damaged + 1] = field
    damaged[#damaged + 1] = string.match(stored, '^t:(%Z+)', 28) or ''
  elseif #stored < 59 then
    damaged[#damaged + 1] = field
    damaged[#damaged + 1] = name
  else
    local resource_kind, resource_family, resource_waiting, resource_free, resource_consumed, resource_permits,
      resource_limit = struct.unpack('<c2c1ddddddd', stored)
    local first_tick = ''
    if resource_waiting > 0 then
      repeat
        local line = call('ZRANGEBYLEX', index, '[q' .. name .. '\0', '(q' .. name .. '\1', 'LIMIT', '0', '1')[1]
        if not line or #line < #name + 11 then
          first_tick = ''
          break
        end
        first_tick = struct.unpack('>I8', sub(line, #name + 4))
      until true
    end
    rows[#rows + 1] = name
    rows[#rows + 1] = resource_kind
    rows[#rows + 1] = resource_limit
    rows[#rows + 1] = resource_free
    rows[#rows + 1] = resource_waiting
    rows[#rows + 1] = first_tick
  end
end
local living = call('ZCOUNT', sessions, '(' .. string.format('%d', now), '+inf')
return {page[1], now, living, rows, damaged}
