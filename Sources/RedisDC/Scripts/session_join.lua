-- Begins a session, and creates the state and the index if they do not exist.
-- KEYS: state, index, sessions, values
-- ARGV
--   [1] SID
--   [2] epoch: of a new state
--   [3] ttl: microseconds that the session lasts without a heartbeat
--   [4] partitions: number of partitions of the namespace, then ' layout 3'
--   [5] about: how the session describes itself
--   [6] fence: the highest that the process has seen; later ones are higher. More than a day ahead, it is not believed.
-- Reply: {'ok', epoch, next: see session_watch.lua}, {'lost'} (the session existed and has expired), or {'conflict',
--   partitions, as in [4]}: of the namespace, without a layout for one of the first layout.
local sid, ttl = ARGV[1], tonumber(ARGV[3])
for i, expected_type in ipairs({'hash', 'zset', 'zset', 'hash'}) do
  local type_found = call('TYPE', KEYS[i]).ok
  if type_found ~= expected_type and type_found ~= 'none' then
    return redis.error_reply('WRONGTYPE ' .. KEYS[i] .. ' holds a ' .. type_found .. ', not a table of the engine')
  end
end
local time = call('TIME')
local now = time[1] * 1000000 + time[2]
local stored = call('HMGET', state, 'epoch', 'partitions', SESSION_FIELD .. sid, 'watchers')
local epoch, partitions, session, watchers = stored[1], stored[2], stored[3], stored[4]
if epoch and partitions ~= ARGV[4] then return {'conflict', partitions or ''} end
local expires, notices, slots = now + ttl, 0, 0
if session and #session == SESSION_SIZE then
  -- A repeated join only extends the session, which may have claims already.
  local old_expires
  old_expires, notices, slots = decode(SESSION, session)
  if old_expires <= now then return {'lost'} end
end
if not epoch then
  -- Without the state, the other keys are useless.
  call('UNLINK', sessions, index, values)
  call('HSET', state, 'epoch', ARGV[2], 'clock', encode(NUMBER, now), 'partitions', ARGV[4])
end
call('ZADD', index, '0', GUARD_LINE)
call('HSET', values, '', '')
call('HSET', state, SESSION_FIELD .. sid, encode(SESSION, expires, notices, slots), ABOUT_FIELD .. sid, ARGV[5])
call('ZADD', sessions, format('%d', expires), sid)
local fence = tonumber(ARGV[6] or 0)
local clock = call('HGET', state, 'clock')
if not clock or #clock ~= #NEVER or fence < now + 86400000000 and decode(NUMBER, clock) < fence then
  call('HSET', state, 'clock', encode(NUMBER, math.max(now, fence < now + 86400000000 and fence or 0)))
end
local reply = {'ok', epoch or ARGV[2]}
