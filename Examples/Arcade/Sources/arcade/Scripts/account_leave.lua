-- Made from Examples/Arcade/Sources/arcade/Lua by scripts/lua.
local account = KEYS[1]
if redis.call('HEXISTS', account, 'password') == 1 then
  return 0
end
return redis.call('DEL', account)
