-- Begins a session, and ends the older one of the same user and device.
-- KEYS[1] device   string  the id of the device's session
-- KEYS[2] session  hash    the new session
-- KEYS[3] older    hash    the session that KEYS[1] names; the same as KEYS[2] if it names none
-- A session has these fields: user, device, token, cookie (the SHA-256 of its secret), expires (ms since 1970); when a
-- newer login has ended it, replaced, and no token and no cookie; when a logout has ended it, ended, and no cookie.
-- ARGV[1] the id that KEYS[1] holds, or ''  [2] new id  [3] user  [4] device  [5] token  [6] cookie  [7] lifetime in ms
-- ARGV[8] the channel of ended sessions: each message is the id of one, whose streams the nodes end
-- Reply: {'ok', ms now, ms when it expires}, or {'again', ID}: KEYS[1] names another session by now, or '' for none.
local call = redis.call
local current = call('GET', KEYS[1]) or ''
if current ~= ARGV[1] then return {'again', current} end
local time = call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local expires = now + tonumber(ARGV[7])
if current ~= '' and call('HDEL', KEYS[3], 'token', 'cookie') > 0 then
  call('HSET', KEYS[3], 'replaced', '1')
  -- Without the right to publish, the streams end a little later.
  redis.pcall('PUBLISH', ARGV[8], current)
end
local until_ms = string.format('%d', expires)
call('HSET', KEYS[2], 'user', ARGV[3], 'device', ARGV[4], 'token', ARGV[5], 'cookie', ARGV[6], 'expires', until_ms)
call('PEXPIREAT', KEYS[2], until_ms)
call('SET', KEYS[1], ARGV[2], 'PXAT', until_ms)
return {'ok', string.format('%d', now), until_ms}
