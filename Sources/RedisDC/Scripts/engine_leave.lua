-- Ends the session. What it still holds is for others to free (engine_heartbeat).
-- KEYS as in engine_head
-- ARGV[1] SID
-- Reply: {'ok'}.
local book, index, sessions, sid = KEYS[1], KEYS[2], KEYS[3], ARGV[1]
local record = redis.call('HGET', book, 's:' .. sid)
if not record then return {'ok'} end
redis.call('HDEL', book, '')
local _, settled, last, grants = struct.unpack('<dddd', record)
if redis.call('ZLEXCOUNT', index, '[s' .. sid .. ':', '(s' .. sid .. ';') == 0 and last - settled < 1000 then
  local dels = {'s:' .. sid, 'i:' .. sid}
  for number = settled + 1, last do dels[#dels + 1] = 'c:' .. sid .. ':' .. string.format('%.0f', number) end
  redis.call('HDEL', book, unpack(dels))
  redis.call('ZREM', sessions, sid)
else
  redis.call('HSET', book, 's:' .. sid, struct.pack('<dddd', 0, settled, last, grants))
  redis.call('ZADD', sessions, 0, sid)
end
return {'ok'}
