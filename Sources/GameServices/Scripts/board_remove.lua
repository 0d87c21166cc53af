-- Made from Sources/GameServices/Lua by scripts/lua.
local call = redis.call
local name, removed = ARGV[1], 0
for window = 1, #KEYS / 2 do
  local ranks, stamps = KEYS[2 * window - 1], KEYS[2 * window]
  local stamp = call('HGET', stamps, name)
  if stamp then
    call('ZREM', ranks, stamp .. name)
    call('HDEL', stamps, name)
    removed = removed + 1
  end
end
return removed
