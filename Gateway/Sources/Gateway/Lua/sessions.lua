-- The sessions of the gateway. A session is a hash with these fields:
--   user, device
--   token     signs requests; it is missing after the session was replaced
--   cookie    SHA-256 of the secret of its cookie
--   expires   ms since 1970
--   replaced  1 if a newer login of the device has ended it; then it has no token and no cookie
--   ended     1 if a logout has ended it; then it has no cookie
-- A device is a string: the id of its session.

-- Returns the time by the clock of Redis, in ms since 1970.
local function read_milliseconds()
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end

-- Returns a whole number as text with all of its digits: `..` writes large ones with an exponent.
local function format_integer(number)
  return string.format('%d', number)
end

-- Notifies the nodes that a session has ended, so that they end its streams. If the user may not publish, the streams
-- end a little later.
local function announce_end(channel, id)
  redis.pcall('PUBLISH', channel, id)
end

-- Begins a session, and ends the older one of the same user and device.
--
-- KEYS[1] device
--     [2] session: the new one
--     [3] session: that which KEYS[1] names; the same as KEYS[2] if it names none
-- ARGV[1] the id that KEYS[1] holds, or ''
--     [2] id of the new session
--     [3] user [4] device [5] token [6] cookie
--     [7] lifetime in ms
--     [8] the channel of ended sessions: each message is the id of one
-- Reply: {'ok', ms now, ms when it expires}. {'again', ID}: KEYS[1] now holds this id, or none if it is ''.
function entry.session_login(keys, arguments)
  local device, session, older = keys[1], keys[2], keys[3]
  local current = redis.call('GET', device) or ''
  if current ~= arguments[1] then return {'again', current} end
  local now = read_milliseconds()
  local expires = format_integer(now + tonumber(arguments[7]))
  if current ~= '' and redis.call('HDEL', older, 'token', 'cookie') > 0 then
    redis.call('HSET', older, 'replaced', '1')
    announce_end(arguments[8], current)
  end
  redis.call('HSET', session, 'user', arguments[3], 'device', arguments[4], 'token', arguments[5],
    'cookie', arguments[6], 'expires', expires)
  redis.call('PEXPIREAT', session, expires)
  redis.call('SET', device, arguments[2], 'PXAT', expires)
  return {'ok', format_integer(now), expires}
end

-- Returns a session and the time. Changes nothing.
--
-- KEYS[1] session
-- Reply: {ms now, user, device, token, cookie, expires, replaced, ended}, with '' for a field that is missing.
function entry.session_load(keys, arguments)
  local now = read_milliseconds()
  local fields =
    redis.call('HMGET', keys[1], 'user', 'device', 'token', 'cookie', 'expires', 'replaced', 'ended')
  local reply = {format_integer(now)}
  for i = 1, 7 do reply[i + 1] = fields[i] or '' end
  return reply
end

-- Admits a request whose signature was verified: once, while its session lasts and its time is current.
--
-- KEYS[1] session
--     [2] nonce, string: exists until the request's time is no longer current
-- ARGV[1] the request's time, ms since 1970
--     [2] ms by which it may differ from the time now
--     [3] 1 for a logout, which is also admitted to a session that a logout has ended; otherwise ''
-- Reply: {RESULT, ms now}. Results: ok; ended: the session is no longer valid; stale; used: the nonce was used before.
function entry.session_admit(keys, arguments)
  local sent, window, is_logout = tonumber(arguments[1]), tonumber(arguments[2]), arguments[3] == '1'
  local now = read_milliseconds()
  local result = 'ok'
  local fields = redis.call('HMGET', keys[1], 'token', 'ended')
  local token, ended = fields[1], fields[2]
  if not token or ended and not is_logout then
    result = 'ended'
  elseif math.abs(now - sent) > window then
    result = 'stale'
  -- A key lives until its expiry is reached: one more millisecond, so that it outlives the last moment of the window.
  elseif not redis.call('SET', keys[2], '', 'NX', 'PXAT', format_integer(sent + window + 1)) then
    result = 'used'
  end
  return {result, format_integer(now)}
end

-- Ends a session. Its token stays for a while, so that a logout whose reply was lost can be repeated.
--
-- KEYS[1] session
--     [2] device
-- ARGV[1] the session's id
--     [2] the channel of ended sessions: each message is the id of one
--     [3] ms for which the logout can be repeated
-- Reply: nothing.
function entry.session_logout(keys, arguments)
  local session, device, id, repeatable = keys[1], keys[2], arguments[1], arguments[3]
  local fields = redis.call('HMGET', session, 'token', 'ended')
  local token, ended = fields[1], fields[2]
  if token and not ended then
    redis.call('HSET', session, 'ended', '1')
    redis.call('HDEL', session, 'cookie')
    if redis.call('PTTL', session) > tonumber(repeatable) then redis.call('PEXPIRE', session, repeatable) end
    announce_end(arguments[2], id)
  end
  if redis.call('GET', device) == id then redis.call('DEL', device) end
end
