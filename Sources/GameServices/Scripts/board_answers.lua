-- Made from Sources/GameServices/Lua by scripts/lua.
local missing = {}
local keys = KEYS
for position = 1, #keys do
  local answer = redis.call('GET', keys[position])
  if not answer then
    missing[#missing + 1] = position
  end
end
return missing
