-- Made from Sources/GameServices/Lua by scripts/lua.
local call = redis.call
local state, id = KEYS[1], ARGV[7]
do
  local rules = ARGV[1]
  local stored = call('HGET', state, 'rules')
  if stored and stored ~= rules then
    return {'rules', stored}
  end
end
call('ZREM', KEYS[3], 'm' .. id)
return call('HDEL', state, 'm:' .. id)
