-- Made from Sources/RedisDC/Lua by scripts/lua.
local state, sessions = KEYS[1], KEYS[3]
local call = redis.call
local page = call('HSCAN', state, ARGV[1], 'MATCH', 's:*', 'COUNT', '500')
local fields = page[2]
for i = 1, #fields, 2 do
  local stored = fields[i + 1]
  local expires = stored and #stored == 24 and struct.unpack('<d', stored) or 0
  if not (expires > 0 and expires < 9007199254740992) then
    expires = 0
  end
  call('ZADD', sessions, 'NX', string.format('%d', expires), string.sub(fields[i], 3))
end
return tonumber(page[1])
