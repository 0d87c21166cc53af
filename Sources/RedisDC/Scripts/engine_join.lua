-- Begins a session, and makes the table when there is none.
-- KEYS as in engine_head
-- ARGV[1] SID  [2] epoch for a new table  [3] microseconds that it lasts without a heartbeat  [4] partitions
--     [5] what the session says of itself
-- Reply: {'ok', epoch}, {'lost'} (it has been here and has ended), or {'conflict', partitions that the namespace has}.
local book, index, sessions, sid = KEYS[1], KEYS[2], KEYS[3], ARGV[1]
for i, kind in ipairs({'hash', 'zset', 'zset'}) do
  local found = redis.call('TYPE', KEYS[i]).ok
  if found ~= kind and found ~= 'none' then
    return redis.error_reply('WRONGTYPE ' .. KEYS[i] .. ' holds a ' .. found .. ', not a table of the engine')
  end
end
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local fields = redis.call('HMGET', book, 'epoch', 'partitions', 's:' .. sid)
if fields[1] and fields[2] ~= ARGV[4] then return {'conflict', fields[2]} end
local ends, settled, last, grants = now + tonumber(ARGV[3]), 0, 0, 0
if fields[3] then
  -- A second time, this only lets it live on: it may hold something already.
  local before
  before, settled, last, grants = struct.unpack('<dddd', fields[3])
  if before <= now then return {'lost'} end
end
if not fields[1] then
  -- Leftovers without a book are of no use to anyone.
  redis.call('DEL', sessions, index)
  redis.call('HSET', book, 'epoch', ARGV[2], 'clock', struct.pack('<d', now), 'partitions', ARGV[4])
end
redis.call('HSET', book, 's:' .. sid, struct.pack('<dddd', ends, settled, last, grants), 'i:' .. sid, ARGV[5])
redis.call('ZADD', sessions, string.format('%.0f', ends), sid)
return {'ok', fields[1] or ARGV[2]}
