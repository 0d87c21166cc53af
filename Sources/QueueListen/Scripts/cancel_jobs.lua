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
local reply, forgotten = {}, {}
call('HDEL', work, '')
for i, tag in ipairs(ARGV) do
  local text = call('HGET', work, 'j:' .. tag)
  reply[i] = 0
  if text then
    local job_state, job_attempts, job_fence, job_since, job_process, job_head, job_key, job_reason_at =
      struct.unpack('<BHddc16c27Bc0', text)
    if job_state == 2 or job_state == 3 then
      local reason = string.sub(text, job_reason_at)
      job_state = 3
      call('HSET', work, 'j:' .. tag, struct.pack('<BHddc16c27Bc0', job_state, job_attempts, job_fence, job_since,
        job_process, job_head, #job_key, job_key) .. reason)
      reply[i] = 2
    elseif job_state ~= 5 then
      call('HDEL', all_work, 'j:' .. tag, 'm:' .. tag)
      if job_state == 1 then
        local queue = call('HGET', all_work, 'o:' .. job_key)
        if queue then
          local kept
          do
            local set = {[tag] = true}
            local kept_2 = {}
            for at = 1, #queue, 8 do
              local tag_2 = string.sub(queue, at, at + 8 - 1)
              if not set[tag_2] then
                kept_2[#kept_2 + 1] = tag_2
              end
            end
            kept = table.concat(kept_2)
          end
          call('HSET', all_work, 'o:' .. job_key, kept)
        end
      elseif job_state == 4 then
        forgotten[#forgotten + 1] = tag
      else
        all_removed[#all_removed + 1] = tag
        if job_key ~= '' then
          local queue, text_2 = call('HGET', all_work, 'o:' .. job_key) or '', nil
          local sub = string.sub
          while queue ~= '' and not text_2 do
            local tag_2 = sub(queue, 1, 8)
            text_2, queue = call('HGET', all_work, 'j:' .. tag_2), sub(queue, 9)
            if text_2 then
              local job_state_2, job_attempts_2, job_fence_2, job_since_2, job_process_2, job_head_2, job_key_2,
                job_reason_at_2 = struct.unpack('<BHddc16c27Bc0', text_2)
              local reason = sub(text_2, job_reason_at_2)
              job_state_2, job_since_2 = 0, now
              call('HSET', all_work, 'j:' .. tag_2, struct.pack('<BHddc16c27Bc0', job_state_2, job_attempts_2,
                job_fence_2, job_since_2, job_process_2, job_head_2, #job_key_2, job_key_2) .. reason, 'o:' .. job_key,
                queue)
              all_added[#all_added + 1] = string.format('%d', 0)
              all_added[#all_added + 1] = tag_2
            end
          end
          if not text_2 then
            call('HDEL', all_work, 'o:' .. job_key)
          end
        end
      end
      reply[i] = 1
    end
  end
end
if #forgotten > 0 then
  call('ZREM', dead, unpack(forgotten))
end
if #all_added > 0 then
  call('ZADD', all_jobs, unpack(all_added))
end
if #all_removed > 0 then
  call('ZREM', all_jobs, unpack(all_removed))
end
if call('HLEN', work) <= 2 and call('HEXISTS', work, 'f') == 1 then
  call('PEXPIRE', work, string.format('%d', 86400000))
end
return reply
