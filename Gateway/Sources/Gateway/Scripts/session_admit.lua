-- Made from Gateway/Sources/Gateway/Lua by scripts/lua.
local arguments = ARGV
local sent, window, is_logout = tonumber(arguments[1]), tonumber(arguments[2]), arguments[3] == '1'
local now
local call = redis.call
do
  local time = call('TIME')
  now = time[1] * 1000 + math.floor(time[2] / 1000)
end
local result = 'ok'
local fields = call('HMGET', KEYS[1], 'token', 'ended')
local token, ended = fields[1], fields[2]
if not token or ended and not is_logout then
  result = 'ended'
elseif math.abs(now - sent) > window then
  result = 'stale'
elseif not call('SET', KEYS[2], '', 'NX', 'PXAT', string.format('%d', sent + window + 1)) then
  result = 'used'
end
return {result, string.format('%d', now)}
