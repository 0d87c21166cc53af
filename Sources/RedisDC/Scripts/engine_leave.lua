-- Ends a session. Claims that it still has are ended like those of an expired session (engine_heartbeat).
-- KEYS, fields and formats as in engine_head
-- ARGV
--   [1] SID
-- Reply: {'ok'}.
local SESSION, SESSION_FIELD, ABOUT_FIELD, CLAIM_FIELD, CLAIM_LINE = '<dddd', 's:', 'i:', 'c:', 's'
local state, index, sessions, sid = KEYS[1], KEYS[2], KEYS[3], ARGV[1]
local record = redis.call('HGET', state, SESSION_FIELD .. sid)
if not record then return {'ok'} end
-- Changes nothing. After a write that Redis allows at maxmemory, it allows the script's other writes too.
redis.call('HDEL', state, '')
local _, settled, last_answer, grants = struct.unpack(SESSION, record)
local claims = redis.call('ZLEXCOUNT', index, '[' .. CLAIM_LINE .. sid .. ':', '(' .. CLAIM_LINE .. sid .. ';')
if claims == 0 and last_answer - settled < 1000 then
  local fields = {SESSION_FIELD .. sid, ABOUT_FIELD .. sid}
  for number = settled + 1, last_answer do
    fields[#fields + 1] = CLAIM_FIELD .. sid .. ':' .. string.format('%.0f', number)
  end
  redis.call('HDEL', state, unpack(fields))
  redis.call('ZREM', sessions, sid)
else
  redis.call('HSET', state, SESSION_FIELD .. sid, struct.pack(SESSION, 0, settled, last_answer, grants))
  redis.call('ZADD', sessions, 0, sid)
end
return {'ok'}
