-- Returns a session and the time. Changes nothing.
-- KEYS[1] session  as in session_login.lua
-- Reply: {ms now, user, device, token, cookie, expires, replaced, ended}, with '' for a field that is missing.
local time = redis.call('TIME')
local fields = redis.call('HMGET', KEYS[1], 'user', 'device', 'token', 'cookie', 'expires', 'replaced', 'ended')
local reply = {string.format('%d', time[1] * 1000 + math.floor(time[2] / 1000))}
for i = 1, 7 do reply[i + 1] = fields[i] or '' end
return reply
