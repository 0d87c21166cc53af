-- Made from Sources/QueueListen/Lua by scripts/lua.
local keys = KEYS
local work, dead = keys[1], keys[3]
local now
local call = redis.call
do
  local time = call('TIME')
  now = time[1] * 1000 + math.floor(time[2] / 1000)
end
local all_work, all_jobs, all_added, all_removed
local try = redis.pcall
do
  local jobs = keys[2]
  local failed = try('ZCARD', dead)
  if type(failed) == 'table' then
    return {'foreign', dead}
  end
  if type(try('HEXISTS', work, 'x')) == 'table' then
    return {'foreign', work}
  end
  if type(try('ZCARD', jobs)) == 'table' then
    return {'foreign', jobs}
  end
  all_work, all_jobs, all_added, all_removed = work, jobs, {}, {}
end
local reply, retried = {}, {}
call('HDEL', work, '')
for i, tag in ipairs(ARGV) do
  local text = call('HGET', work, 'j:' .. tag)
  reply[i] = 0
  if text then
    local job_state, job_attempts, job_fence, job_since, job_process, job_head, job_key, job_reason_at =
      struct.unpack('<BHddc16c27Bc0', text)
    local reason = string.sub(text, job_reason_at)
    if job_state == 4 then
      local is_possible
      repeat
        local queue = job_key ~= '' and call('HGET', all_work, 'o:' .. job_key)
        job_state, job_attempts, job_since = 0, 0, now
        if queue and #queue >= 8192 then
          is_possible = false
          break
        end
        if queue then
          job_state = 1
          call('HSET', all_work, 'o:' .. job_key, queue .. tag)
        else
          if job_key ~= '' then
            call('HSET', all_work, 'o:' .. job_key, '')
          end
          all_added[#all_added + 1] = string.format('%d', 0)
          all_added[#all_added + 1] = tag
        end
        call('HSET', all_work, 'j:' .. tag, struct.pack('<BHddc16c27Bc0', job_state, job_attempts, job_fence, job_since,
          job_process, job_head, #job_key, job_key) .. reason)
        is_possible = true
      until true
      if is_possible then
        reply[i] = 1
        retried[#retried + 1] = tag
      end
    end
  end
end
if #retried > 0 then
  call('ZREM', dead, unpack(retried))
end
if #all_added > 0 then
  call('ZADD', all_jobs, unpack(all_added))
end
if #all_removed > 0 then
  call('ZREM', all_jobs, unpack(all_removed))
end
return reply
