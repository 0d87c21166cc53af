-- Made from Sources/RedisDC/Lua by scripts/lua.
local partition_state = KEYS[1]
local arguments, call = ARGV, redis.call
local stored = call('HGET', partition_state, arguments[3])
local sub = string.sub
if not stored or sub(stored, 60) ~= sub(arguments[1], 3) .. ':' .. arguments[4] then
  return {'none'}
end
local resource_kind, resource_family, resource_waiting, resource_free, resource_consumed, resource_permits,
  resource_limit, resource_created, resource_signalled = struct.unpack('<c2c1ddddddd', stored)
if resource_kind ~= 'mf' or resource_family ~= 'p' then
  return {'none'}
end
call('HDEL', partition_state, '')
resource_signalled = math.max(resource_signalled, arguments[5] + 1048576)
call('HSET', partition_state, arguments[3], struct.pack('<c2c1ddddddd', resource_kind, resource_family,
  resource_waiting, resource_free, resource_consumed, resource_permits, resource_limit, resource_created,
  resource_signalled) .. sub(stored, 60))
return {resource_signalled, resource_waiting}
