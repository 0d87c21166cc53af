-- Made from Examples/Arcade/Sources/arcade/Lua by scripts/lua.
local account, secret = KEYS[1], ARGV[1]
local call = redis.call
local stored = call('HGET', account, 'secret')
if not stored and call('EXISTS', account) == 0 then
  if ARGV[3] == '0' then
    return -1
  end
  call('HSET', account, 'secret', secret)
  stored = secret
end
if stored ~= secret then
  return 0
end
call('HINCRBY', account, 'logins', '1')
if call('HEXISTS', account, 'password') == 0 then
  call('EXPIRE', account, ARGV[2])
end
return 1
