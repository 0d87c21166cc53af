-- Made from Examples/Arcade/Sources/arcade/Lua by scripts/lua.
local game = KEYS[1]
local call = redis.call
if call('HGET', game, 'id') ~= ARGV[1] then
  return {}
end
return {call('HGET', game, 'json'), call('PTTL', game)}
