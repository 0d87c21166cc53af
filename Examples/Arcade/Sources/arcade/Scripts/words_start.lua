-- Made from Examples/Arcade/Sources/arcade/Lua by scripts/lua.
local game, id = KEYS[1], ARGV[1]
local call = redis.call
if call('HGET', game, 'id') ~= id then
  call('HSET', game, 'id', id, 'json', ARGV[2])
  call('PEXPIRE', game, ARGV[3])
end
return {call('HGET', game, 'json'), call('PTTL', game)}
