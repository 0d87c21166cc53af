-- Made from Sources/QueueListen/Lua by scripts/lua.
local arguments = ARGV
local process, ttl, phase, number, known = arguments[1], arguments[2], arguments[3], arguments[4], arguments[5]
local now
local call = redis.call
do
  local time = call('TIME')
  now = time[1] * 1000 + math.floor(time[2] / 1000)
end
local keys = KEYS
local work = keys[1]
local all_work, all_jobs, all_added, all_removed
local try = redis.pcall
do
  local jobs = keys[2]
  local dead = keys[3]
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
local next_time
local format = string.format
do
  local jobs = keys[2]
  local first = call('ZRANGEBYSCORE', jobs, '-inf', '+inf', 'WITHSCORES', 'LIMIT', '0', '1')
  next_time = first[2] and format('%d', first[2]) or ''
end
local worker_number, worker_results, worker_taken, worker_held_at, worker_held
local worker_is_known = false
local text = call('HGET', work, 'w:' .. process)
local sub, unpacked = string.sub, struct.unpack
if text then
  worker_number, worker_results, worker_taken, worker_held_at = unpacked('<dHc0Hc0', text)
  worker_held = sub(text, worker_held_at)
  worker_is_known = true
end
local workers_text, workers_is_alive, workers_dead, workers_has_more
do
  local packed = call('HGET', work, 'p') or ''
  workers_text, workers_is_alive, workers_has_more = '', false, false
  local at, count = 1, 0
  while at <= #packed do
    local worker_process, worker_ends, worker_next_at = unpacked('<c16d', packed, at)
    at = worker_next_at
    if worker_process == process then
      workers_is_alive = worker_ends > now
    elseif worker_ends > now or count >= 4 then
      workers_text = workers_text .. struct.pack('<c16d', worker_process, worker_ends)
      if worker_ends <= now then
        workers_has_more = true
      end
    else
      count = count + 1
      workers_dead = workers_dead or {}
      workers_dead[count] = worker_process
    end
  end
end
if phase == '1' and not (workers_is_alive and worker_is_known) then
  return {'gone'}
end
call('HDEL', work, '')
if workers_dead then
  for _, other in ipairs(workers_dead) do
    local text_2 = call('HGET', all_work, 'w:' .. other)
    if text_2 then
      local worker_held_2
      local worker_number_2, worker_results_2, worker_taken_2, worker_held_at_2 = unpacked('<dHc0Hc0', text_2)
      worker_held_2 = sub(text_2, worker_held_at_2)
      for at = 1, #worker_held_2, 8 do
        local tag = sub(worker_held_2, at, at + 8 - 1)
        local text_3 = call('HGET', all_work, 'j:' .. tag)
        if text_3 then
          local job_state, job_attempts, job_fence, job_since, job_process, job_head, job_key, job_reason_at =
            unpacked('<BHddc16c27Bc0', text_3)
          if job_state == 2 and job_process == other then
            local reason = sub(text_3, job_reason_at)
            job_state, job_since, job_process = 0, now, '\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0'
            call('HSET', all_work, 'j:' .. tag, struct.pack('<BHddc16c27Bc0', job_state, job_attempts, job_fence,
              job_since, job_process, job_head, #job_key, job_key) .. reason)
            all_added[#all_added + 1] = format('%d', 0)
            all_added[#all_added + 1] = tag
          elseif (job_state == 3 or job_state == 5) and job_process == other then
            call('HDEL', all_work, 'j:' .. tag, 'm:' .. tag)
            if job_key ~= '' then
              local queue, text_4 = call('HGET', all_work, 'o:' .. job_key) or '', nil
              while queue ~= '' and not text_4 do
                local tag_2 = sub(queue, 1, 8)
                text_4, queue = call('HGET', all_work, 'j:' .. tag_2), sub(queue, 9)
                if text_4 then
                  local job_state_2, job_attempts_2, job_fence_2, job_since_2, job_process_2, job_head_2, job_key_2,
                    job_reason_at_2 = unpacked('<BHddc16c27Bc0', text_4)
                  local reason = sub(text_4, job_reason_at_2)
                  job_state_2, job_since_2 = 0, now
                  call('HSET', all_work, 'j:' .. tag_2, struct.pack('<BHddc16c27Bc0', job_state_2, job_attempts_2,
                    job_fence_2, job_since_2, job_process_2, job_head_2, #job_key_2, job_key_2) .. reason, 'o:' ..
                    job_key, queue)
                  all_added[#all_added + 1] = format('%d', 0)
                  all_added[#all_added + 1] = tag_2
                end
              end
              if not text_4 then
                call('HDEL', all_work, 'o:' .. job_key)
              end
            end
          end
        end
      end
      call('HDEL', all_work, 'w:' .. other)
    end
  end
end
local lost, cancelled = '', ''
if phase == '1' then
  do
    local cancelled_2 = ''
    for at = 1, #worker_held, 8 do
      local tag = sub(worker_held, at, at + 8 - 1)
      local text_2 = call('HGET', work, 'j:' .. tag)
      if text_2 and string.byte(text_2) == 3 then
        cancelled_2 = cancelled_2 .. tag
      end
    end
    cancelled = cancelled_2
  end
  if tonumber(number) == worker_number - 1 then
    known = known .. worker_taken
  end
  if tonumber(number) >= worker_number - 1 then
    do
      local is_known, kept, lost_2 = {}, '', ''
      for at = 1, #known, 8 do
        is_known[sub(known, at, at + 8 - 1)] = true
      end
      for at = 1, #worker_held, 8 do
        local tag = sub(worker_held, at, at + 8 - 1)
        if is_known[tag] then
          kept = kept .. tag
          is_known[tag] = nil
        else
          local text_2 = call('HGET', all_work, 'j:' .. tag)
          if text_2 then
            local job_state, job_attempts, job_fence, job_since, job_process, job_head, job_key, job_reason_at =
              unpacked('<BHddc16c27Bc0', text_2)
            if job_state == 2 and job_process == process then
              local reason = sub(text_2, job_reason_at)
              job_state, job_since, job_process = 0, now, '\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0'
              call('HSET', all_work, 'j:' .. tag, struct.pack('<BHddc16c27Bc0', job_state, job_attempts, job_fence,
                job_since, job_process, job_head, #job_key, job_key) .. reason)
              all_added[#all_added + 1] = format('%d', 0)
              all_added[#all_added + 1] = tag
            elseif (job_state == 3 or job_state == 5) and job_process == process then
              call('HDEL', all_work, 'j:' .. tag, 'm:' .. tag)
              if job_key ~= '' then
                local queue, text_3 = call('HGET', all_work, 'o:' .. job_key) or '', nil
                while queue ~= '' and not text_3 do
                  local tag_2 = sub(queue, 1, 8)
                  text_3, queue = call('HGET', all_work, 'j:' .. tag_2), sub(queue, 9)
                  if text_3 then
                    local job_state_2, job_attempts_2, job_fence_2, job_since_2, job_process_2, job_head_2, job_key_2,
                      job_reason_at_2 = unpacked('<BHddc16c27Bc0', text_3)
                    local reason = sub(text_3, job_reason_at_2)
                    job_state_2, job_since_2 = 0, now
                    call('HSET', all_work, 'j:' .. tag_2, struct.pack('<BHddc16c27Bc0', job_state_2, job_attempts_2,
                      job_fence_2, job_since_2, job_process_2, job_head_2, #job_key_2, job_key_2) .. reason, 'o:' ..
                      job_key, queue)
                    all_added[#all_added + 1] = format('%d', 0)
                    all_added[#all_added + 1] = tag_2
                  end
                end
                if not text_3 then
                  call('HDEL', all_work, 'o:' .. job_key)
                end
              end
            end
          end
        end
      end
      for at = 1, #known, 8 do
        local tag = sub(known, at, at + 8 - 1)
        if is_known[tag] then
          lost_2 = lost_2 .. tag
        end
      end
      worker_held = kept
      lost = lost_2
    end
    call('HSET', work, 'w:' .. process, struct.pack('<dHc0Hc0', worker_number, #worker_results, worker_results,
      #worker_taken, worker_taken) .. worker_held)
  end
elseif phase == '2' then
  local text_2 = call('HGET', all_work, 'w:' .. process)
  if text_2 then
    local worker_held_2
    local worker_number_2, worker_results_2, worker_taken_2, worker_held_at_2 = unpacked('<dHc0Hc0', text_2)
    worker_held_2 = sub(text_2, worker_held_at_2)
    for at = 1, #worker_held_2, 8 do
      local tag = sub(worker_held_2, at, at + 8 - 1)
      local text_3 = call('HGET', all_work, 'j:' .. tag)
      if text_3 then
        local job_state, job_attempts, job_fence, job_since, job_process, job_head, job_key, job_reason_at =
          unpacked('<BHddc16c27Bc0', text_3)
        if job_state == 2 and job_process == process then
          local reason = sub(text_3, job_reason_at)
          job_state, job_since, job_process = 0, now, '\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0'
          call('HSET', all_work, 'j:' .. tag, struct.pack('<BHddc16c27Bc0', job_state, job_attempts, job_fence,
            job_since, job_process, job_head, #job_key, job_key) .. reason)
          all_added[#all_added + 1] = format('%d', 0)
          all_added[#all_added + 1] = tag
        elseif (job_state == 3 or job_state == 5) and job_process == process then
          call('HDEL', all_work, 'j:' .. tag, 'm:' .. tag)
          if job_key ~= '' then
            local queue, text_4 = call('HGET', all_work, 'o:' .. job_key) or '', nil
            while queue ~= '' and not text_4 do
              local tag_2 = sub(queue, 1, 8)
              text_4, queue = call('HGET', all_work, 'j:' .. tag_2), sub(queue, 9)
              if text_4 then
                local job_state_2, job_attempts_2, job_fence_2, job_since_2, job_process_2, job_head_2, job_key_2,
                  job_reason_at_2 = unpacked('<BHddc16c27Bc0', text_4)
                local reason = sub(text_4, job_reason_at_2)
                job_state_2, job_since_2 = 0, now
                call('HSET', all_work, 'j:' .. tag_2, struct.pack('<BHddc16c27Bc0', job_state_2, job_attempts_2,
                  job_fence_2, job_since_2, job_process_2, job_head_2, #job_key_2, job_key_2) .. reason, 'o:' ..
                  job_key, queue)
                all_added[#all_added + 1] = format('%d', 0)
                all_added[#all_added + 1] = tag_2
              end
            end
            if not text_4 then
              call('HDEL', all_work, 'o:' .. job_key)
            end
          end
        end
      end
    end
    call('HDEL', all_work, 'w:' .. process)
  end
elseif phase == '0' and not worker_is_known then
  local new_number, new_results, new_taken = 0, '', ''
  call('HSET', work, 'w:' .. process, struct.pack('<dHc0Hc0', new_number, #new_results, new_results, #new_taken,
    new_taken))
  call('PERSIST', work)
end
if #all_added > 0 then
  next_time = '0'
end
if phase ~= '2' then
  workers_text = workers_text .. struct.pack('<c16d', process, now + ttl)
end
if workers_text ~= '' then
  call('HSET', work, 'p', workers_text)
else
  call('HDEL', work, 'p')
  if call('HLEN', work) <= 2 and call('HEXISTS', work, 'f') == 1 then
    call('PEXPIRE', work, format('%d', 86400000))
  end
end
if #all_added > 0 then
  call('ZADD', all_jobs, unpack(all_added))
end
if #all_removed > 0 then
  call('ZREM', all_jobs, unpack(all_removed))
end
return {'ok', format('%d', now), next_time, lost, cancelled, workers_has_more and 1 or 0}
