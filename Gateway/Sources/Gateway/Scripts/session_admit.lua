-- Admits a request whose signature was verified: once, while its session lasts and its time is current.
-- KEYS[1] session  as in session_login.lua
-- KEYS[2] nonce    string  exists until the request's time is no longer current
-- ARGV[1] the request's time, ms since 1970  [2] ms by which it may differ from the time now
-- ARGV[3] '1' for a logout, which is also admitted to a session that a logout has ended; otherwise ''
-- Reply: {RESULT, ms now}. Results: ok; ended: the session is no longer valid; stale; used: the nonce was used before.
local call = redis.call
local time = call('TIME')
local now, sent, window = time[1] * 1000 + math.floor(time[2] / 1000), tonumber(ARGV[1]), tonumber(ARGV[2])
local result = 'ok'
local fields = call('HMGET', KEYS[1], 'token', 'ended')
if not fields[1] or fields[2] and ARGV[3] ~= '1' then
  result = 'ended'
elseif math.abs(now - sent) > window then
  result = 'stale'
-- A key lives until its expiry is reached: one more millisecond, so that it outlives the last moment of the window.
elseif not call('SET', KEYS[2], '', 'NX', 'PXAT', string.format('%d', sent + window + 1)) then
  result = 'used'
end
return {result, string.format('%d', now)}
