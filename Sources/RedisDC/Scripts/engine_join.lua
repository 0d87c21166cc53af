-- Begins a session, and creates the state if it does not exist.
-- KEYS, fields and formats as in engine_head
-- ARGV
--   [1] SID
--   [2] epoch: of a new state
--   [3] ttl: microseconds that the session lasts without a heartbeat
--   [4] partitions: number of partitions of the namespace
--   [5] about: how the session describes itself
-- Reply: {'ok', epoch}, {'lost'} (the session existed and has expired), or {'conflict', number of partitions that the
--   namespace has}.
local SESSION, NUMBER, SESSION_FIELD, ABOUT_FIELD = '<dddd', '<d', 's:', 'i:'
local state, index, sessions, sid = KEYS[1], KEYS[2], KEYS[3], ARGV[1]
for i, expected_type in ipairs({'hash', 'zset', 'zset'}) do
  local type_found = redis.call('TYPE', KEYS[i]).ok
  if type_found ~= expected_type and type_found ~= 'none' then
    return redis.error_reply('WRONGTYPE ' .. KEYS[i] .. ' holds a ' .. type_found .. ', not a table of the engine')
  end
end
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local stored = redis.call('HMGET', state, 'epoch', 'partitions', SESSION_FIELD .. sid)
local epoch, partitions, session = stored[1], stored[2], stored[3]
if epoch and partitions ~= ARGV[4] then return {'conflict', partitions} end
local expires, settled, last_answer, grants = now + tonumber(ARGV[3]), 0, 0, 0
if session then
  -- A repeated join only extends the session, which may have claims already.
  local old_expires
  old_expires, settled, last_answer, grants = struct.unpack(SESSION, session)
  if old_expires <= now then return {'lost'} end
end
if not epoch then
  -- Without the state, the other two keys are useless.
  redis.call('DEL', sessions, index)
  redis.call('HSET', state, 'epoch', ARGV[2], 'clock', struct.pack(NUMBER, now), 'partitions', ARGV[4])
end
redis.call('HSET', state, SESSION_FIELD .. sid, struct.pack(SESSION, expires, settled, last_answer, grants),
  ABOUT_FIELD .. sid, ARGV[5])
redis.call('ZADD', sessions, string.format('%.0f', expires), sid)
return {'ok', epoch or ARGV[2]}
