-- Made from Sources/GameServices/Lua by scripts/lua.
local state, id = KEYS[1], ARGV[7]
local call = redis.call
do
  local rules = ARGV[1]
  local stored = call('HGET', state, 'rules')
  if stored and stored ~= rules then
    return {'rules', stored}
  end
end
call('ZREM', KEYS[3], 'm' .. id)
return call('HDEL', state, 'm:' .. id)
