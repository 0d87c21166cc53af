-- Ends a session. Its token stays for a while, so that a logout whose reply was lost can be repeated.
-- KEYS[1] session  KEYS[2] device  as in session_login.lua
-- ARGV[1] the session's id  [2] as in session_login.lua, the channel of ended sessions
-- ARGV[3] ms for which the logout can be repeated
local call = redis.call
local fields = call('HMGET', KEYS[1], 'token', 'ended')
if fields[1] and not fields[2] then
  call('HSET', KEYS[1], 'ended', '1')
  call('HDEL', KEYS[1], 'cookie')
  if call('PTTL', KEYS[1]) > tonumber(ARGV[3]) then call('PEXPIRE', KEYS[1], ARGV[3]) end
  redis.pcall('PUBLISH', ARGV[2], ARGV[1])
end
if call('GET', KEYS[2]) == ARGV[1] then call('DEL', KEYS[2]) end
