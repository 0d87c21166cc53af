-- Made from Sources/GameServices/Lua by scripts/lua.
local call, keys = redis.call, KEYS
do
  local state = keys[1]
  local rules = ARGV[1]
  local stored = call('HGET', state, 'rules')
  if stored and stored ~= rules then
    return {'rules', stored}
  end
end
local now
do
  local time = call('TIME')
  now = time[1] * 1000 + math.floor(time[2] / 1000)
end
return {call('ZLEXCOUNT', keys[2], '[o', '(p'), call('ZCOUNT', keys[4], '(' .. string.format('%.0f', now), '+inf')}
