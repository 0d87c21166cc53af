-- Made from Sources/RedisDC/Lua by scripts/lua.
local key, guard_key = KEYS[1], KEYS[2]
local arguments = ARGV
local fence, name, action, value, ttl = arguments[1], arguments[2], arguments[3], arguments[4], arguments[5]
local call = redis.call
do
  local kept = call('GET', guard_key)
  if kept then
    local space = string.find(kept, ' ', 1, true)
    if not space or string.sub(kept, space + 1) ~= name then
      return {'other', kept}
    end
    if tonumber(string.sub(kept, 1, space - 1)) > tonumber(fence) then
      return {'late', kept}
    end
  end
  call('SET', guard_key, fence .. ' ' .. name, 'PX', '604800000')
end
if action == 'delete' then
  call('DEL', key)
elseif ttl ~= '' then
  call('SET', key, value, 'PX', ttl)
else
  call('SET', key, value)
end
return {'ok'}
