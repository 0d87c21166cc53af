-- Made from Sources/GameServices/Lua by scripts/lua.
local name, removed = ARGV[1], {}
local call, keys = redis.call, KEYS
for window = 1, #keys / 2 do
  local ranks, stamps = keys[2 * window - 1], keys[2 * window]
  local stamp = call('HGET', stamps, name)
  if stamp then
    call('ZREM', ranks, stamp .. name)
    call('HDEL', stamps, name)
  end
  removed[window] = stamp or ''
end
return removed
