-- Made from Sources/QueueListen/Lua by scripts/lua.
local reply = {}
local arguments, keys, unpacked = ARGV, KEYS, struct.unpack
for i = 1, #keys do
  local is_behind
  repeat
    local box = keys[i]
    local name = arguments[2 * i]
    local index = tonumber(arguments[2 * i - 1])
    local devices, at, is_behind_2 = redis.pcall('HGET', box, 'd'), 1, false
    if not devices or devices.err then
      is_behind = false
      break
    end
    while at <= #devices do
      local device_name, device_index, device_tag, device_seen, device_polls, device_next_at = unpacked('<Bc0dc8dBc0',
        devices, at)
      at = device_next_at
      if device_name == name then
        is_behind_2 = device_index < index
        break
      end
    end
    is_behind = is_behind_2
  until true
  if is_behind then
    reply[#reply + 1] = i
  end
end
return reply
