-- Made from Sources/QueueListen/Lua by scripts/lua.
local work = KEYS[#KEYS]
local arguments = ARGV
local process, tag, fence = arguments[#arguments - 2], arguments[#arguments - 1], tonumber(arguments[#arguments])
local text = redis.pcall('HGET', work, 'j:' .. tag)
if type(text) == 'table' then
  return {'foreign', work}
end
if not text then
  return {'lost'}
end
local job_state, job_attempts, job_fence, job_since, job_process, job_head, job_key, job_reason_at =
  struct.unpack('<BHddc16c27Bc0', text)
local reason = string.sub(text, job_reason_at)
if job_process ~= process or job_fence ~= fence then
  return {'lost'}
end
if job_state == 5 then
  return {'done'}
end
if job_state ~= 2 then
  return {'lost'}
end
redis.call('HDEL', work, '')
job_state = 5
return struct.pack('<BHddc16c27Bc0', job_state, job_attempts, job_fence, job_since, job_process, job_head, #job_key,
  job_key) .. reason
