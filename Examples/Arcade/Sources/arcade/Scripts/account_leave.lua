-- Made from Examples/Arcade/Sources/arcade/Lua by scripts/lua.
local call = redis.call
local account = KEYS[1]
if call('HEXISTS', account, 'password') == 1 then
  return 0
end
return call('DEL', account)
