-- Made from Sources/RedisDC/Lua by scripts/lua.
local keys = KEYS
local total = #keys / 2
local arguments = ARGV
local fence, lock = arguments[#arguments - 1], arguments[#arguments]
local call = redis.call
for number = total + 1, #keys do
  local kept = call('GET', keys[number])
  if kept then
    local space = string.find(kept, ' ', 1, true)
    if not space or string.sub(kept, space + 1) ~= lock then
      return {'other', kept}
    end
    if tonumber(string.sub(kept, 1, space - 1)) > tonumber(fence) then
      return {'late', kept}
    end
  end
end
for number = total + 1, #keys do
  call('SET', keys[number], fence .. ' ' .. lock, 'PX', '604800000')
end
return false
