-- Made from Sources/RedisDC/Lua by scripts/lua.
local permits_key = KEYS[1]
local call = redis.call
do
  local type_found = call('TYPE', permits_key).ok
  if type_found ~= 'none' and type_found ~= 'list' then
    local message = 'WRONGTYPE ' .. permits_key .. ' holds a ' .. type_found .. ', not the permits of a semaphore'
    return redis.error_reply(message)
  end
end
if not call('SET', KEYS[2], '1', 'NX', 'EX', ARGV[2]) then
  return 0
end
call('RPUSH', permits_key, ARGV[1])
return 1
