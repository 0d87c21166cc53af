-- Ends a session.
-- KEYS[1] session  KEYS[2] device  as in session_login.lua
-- ARGV[1] the session's id  [2] as in session_login.lua, the channel of ended sessions
-- Reply: 1 if it was the device's current session, else 0.
local call = redis.call
if call('DEL', KEYS[1]) == 1 then redis.pcall('PUBLISH', ARGV[2], ARGV[1]) end
if call('GET', KEYS[2]) ~= ARGV[1] then return 0 end
call('DEL', KEYS[2])
return 1
