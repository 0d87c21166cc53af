-- Made from Sources/GameServices/Lua by scripts/lua.
local arguments = ARGV
local name, removed = arguments[1], 0
local call, keys = redis.call, KEYS
for window = 1, #keys / 2 do
  local ranks, stamps = keys[2 * window - 1], keys[2 * window]
  local stamp = call('HGET', stamps, name)
  if stamp and tonumber(stamp, 16) <= tonumber(arguments[window + 1], 16) then
    call('ZREM', ranks, stamp .. name)
    call('HDEL', stamps, name)
    removed = removed + 1
  end
end
return removed
