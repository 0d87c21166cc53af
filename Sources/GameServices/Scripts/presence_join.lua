-- Made from Sources/GameServices/Lua by scripts/lua.
local arguments = ARGV
local epoch, session_field = arguments[1], 's' .. arguments[3]
local now
local call = redis.call
do
  local time = call('TIME')
  now = time[1] * 1000 + math.floor(time[2] / 1000)
end
local bucket_epoch, bucket_version, bucket_tag, bucket_first, bucket_bytes, bucket_renewed, bucket_exists, bucket_state,
  bucket_index, bucket_due, bucket_log
local keys = KEYS
do
  local state = keys[1]
  local index = keys[2]
  local due = keys[3]
  local log_2 = keys[4]
  bucket_state, bucket_index, bucket_due, bucket_log = state, index, due, log_2
  local stored = call('HGET', state, 'b')
  if stored then
    bucket_epoch, bucket_version, bucket_tag, bucket_first, bucket_bytes, bucket_renewed = struct.unpack('<c8dc8ddd',
      stored)
    bucket_exists = call('LLEN', log_2) == bucket_version - bucket_first + 1
  end
end
if not bucket_exists and epoch ~= '' then
  local tag = arguments[2]
  call('DEL', bucket_state, bucket_index, bucket_due, bucket_log)
  bucket_exists, bucket_epoch, bucket_version, bucket_tag = true, epoch, 0, tag
  bucket_first, bucket_bytes, bucket_renewed = 0, 8, 0
  call('ZADD', bucket_index, '0', 'a')
  call('ZADD', bucket_due, '+inf', 'a')
  call('RPUSH', bucket_log, tag)
end
local session_last_batch
local session_text = call('HGET', bucket_state, session_field)
if session_text then
  session_last_batch = struct.unpack('<dd', session_text)
end
if session_text and session_last_batch ~= 0 then
  return {'lost'}
end
call('ZADD', bucket_due, now + arguments[4], session_field)
call('HSET', bucket_state, session_field, struct.pack('<dd', 0, -1))
call('PEXPIRE', bucket_state, '7200000')
call('PEXPIRE', bucket_index, '7200000')
call('PEXPIRE', bucket_due, '7200000')
call('PEXPIRE', bucket_log, '7200000')
bucket_renewed = now
call('HSET', bucket_state, 'b', struct.pack('<c8dc8ddd', bucket_epoch, bucket_version, bucket_tag, bucket_first,
  bucket_bytes, bucket_renewed))
return {'ok'}
