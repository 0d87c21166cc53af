-- Made from Sources/QueueListen/Lua by scripts/lua.
local keys = KEYS
local meta, box, mail, work = keys[1], keys[2], keys[3], keys[4]
local arguments, unpacked = ARGV, struct.unpack
local target_partitions, target_new_epoch, target_request_at = unpacked('<Hc8', arguments[1])
local request_process, request_number, request_fence, request_max_jobs, request_max_bytes, request_max_dead,
  request_ends = unpacked('<c16dddddH', arguments[2])
local now
local call = redis.call
do
  local time = call('TIME')
  now = time[1] * 1000 + math.floor(time[2] / 1000)
end
local state_partitions, state_epoch, state_last, state_tag, state_from, state_from_tag, state_sum, state_from_sum,
  state_hollow, state_keyed, state_due, state_own_size, state_rest_at, state_rest, state_is_new, state_is_partition_new
local format, sub, try = string.format, string.sub, redis.pcall
do
  local text, count = try('HGET', box, 'm'), try('LLEN', mail)
  if text then
    if text.err then
      return {'foreign', box}
    end
    state_partitions, state_epoch, state_last, state_tag, state_from, state_from_tag, state_sum, state_from_sum,
      state_hollow, state_keyed, state_due, state_own_size, state_rest_at = unpacked('<Hc8dc8dc8dddddB', text)
    if state_partitions ~= target_partitions then
      return {'partitions', format('%d', state_partitions)}
    end
    state_rest = state_rest_at <= #text and sub(text, state_rest_at) or ''
  else
    do
      local layout = try('HGET', meta, 'partitions')
      if type(layout) == 'table' then
        return {'foreign', meta}
      end
      if layout and layout ~= target_partitions .. ' layout 2' then
        return {'partitions', layout}
      end
      state_is_partition_new = not layout
    end
    state_partitions, state_epoch, state_is_new = target_partitions, target_new_epoch, true
    state_last, state_tag, state_from, state_from_tag, state_sum, state_from_sum = 0, '\0\0\0\0\0\0\0\0', 0,
      '\0\0\0\0\0\0\0\0', 0, 0
    state_hollow, state_keyed, state_due, state_own_size = 0, 0, 0, 0
    state_rest = ''
  end
  if count ~= 0 then
    if type(count) == 'table' then
      return {'foreign', mail}
    end
    local tail = call('LINDEX', mail, '-2')
    if count % 2 == 1 or #tail ~= 27 then
      return {'foreign', mail}
    end
    local head_kind, head_index, head_sum, head_sent, head_tag = unpacked('<BI6I6I6c8', tail)
    if count ~= 2 * (state_last - state_from) or head_index ~= state_last or head_tag ~= state_tag then
      local first = call('LRANGE', mail, '0', '1')
      if #first[1] ~= 27 then
        return {'foreign', mail}
      end
      local first_head_kind, first_head_index, first_head_sum = unpacked('<BI6I6', first[1])
      state_epoch, state_last, state_tag, state_sum, state_is_new = target_new_epoch, head_index, head_tag, head_sum,
        true
      state_from, state_from_tag, state_from_sum = head_index - count / 2, '\0\0\0\0\0\0\0\0', first_head_sum - 27 -
        #first[2]
      state_hollow, state_due = 0, 0
    end
  elseif state_last > state_from then
    state_from, state_from_tag, state_from_sum, state_hollow = state_last, state_tag, state_sum, 0
  end
end
local listen_phase, listen_process, listen_poll, listen_registration, listen_cursor_index, listen_cursor_epoch,
  listen_cursor_tag, listen_max_messages, listen_max_bytes, listen_ttl, listen_backlog_count, listen_backlog_age,
  listen_device_ttl, listen_reads_ahead, listen_requires_device
do
  local text = arguments[1]
  listen_phase, listen_process, listen_poll, listen_registration, listen_cursor_index, listen_cursor_epoch,
    listen_cursor_tag, listen_max_messages, listen_max_bytes, listen_ttl, listen_backlog_count, listen_backlog_age,
    listen_device_ttl = unpacked('<Bc16dddc8c8dddddd', text, target_request_at)
  listen_requires_device = listen_phase >= 8
  if listen_requires_device then
    listen_phase = listen_phase - 8
  end
  listen_reads_ahead = listen_phase >= 4
  if listen_reads_ahead then
    listen_phase = listen_phase - 4
  end
  if state_own_size > 0 then
    local limits_max_messages, limits_max_bytes, limits_when_full, limits_max_age, limits_ttl, limits_backlog_count,
      limits_backlog_age, limits_device_ttl = unpacked('<ddBddddd', state_rest)
    listen_ttl, listen_backlog_count, listen_backlog_age, listen_device_ttl = limits_ttl, limits_backlog_count,
      limits_backlog_age, limits_device_ttl
  end
end
local all_work, all_jobs, all_dead, all_failed, all_added, all_removed
do
  local jobs = keys[5]
  local dead = keys[6]
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
  all_work, all_jobs, all_dead, all_failed, all_added, all_removed = work, jobs, dead, failed, {}, {}
end
local fields = call('HMGET', work, 'w:' .. request_process, 'f', 'x', 'c')
if not fields[1] then
  return {'gone'}
end
local worker_number, worker_results, worker_taken, worker_held_at, worker_held
do
  local text = fields[1]
  worker_number, worker_results, worker_taken, worker_held_at = unpacked('<dHc0Hc0', text)
  worker_held = sub(text, worker_held_at)
end
if request_number < worker_number then
  return {'stale'}
end
local reply = {'ok', format('%d', now), '', 1, worker_results}
local pack = struct.pack
if request_number == worker_number then
  for at = 1, #worker_taken, 8 do
    local tag = sub(worker_taken, at, at + 8 - 1)
    local fields_2 = call('HMGET', work, 'j:' .. tag, 'm:' .. tag)
    if fields_2[1] and fields_2[2] then
      local job_state, job_attempts, job_fence, job_since, job_process, job_head = unpacked('<BHddc16c27Bc0',
        fields_2[1])
      if job_state == 2 and job_process == request_process then
        reply[#reply + 1] = pack('<Hdc27', job_attempts, job_fence, job_head)
        reply[#reply + 1] = fields_2[2]
      end
    end
  end
  return reply
end
local devices = call('HGET', box, 'd') or ''
if state_is_new then
  local all, at = '', 1
  while at <= #devices do
    local device_name, device_index, device_tag, device_seen, device_polls, device_next_at = unpacked('<Bc0dc8dBc0',
      devices, at)
    at = device_next_at
    device_index, device_tag = -1, '\0\0\0\0\0\0\0\0'
    all = all .. pack('<Bc0dc8dBc0', #device_name, device_name, device_index, device_tag, device_seen, #device_polls,
      device_polls)
  end
  devices = all
end
local mine_index, mine_tag
local mine_name, mine_seen, mine_polls = 'workers', 0, ''
local others_text, others_count, others_least
do
  others_text, others_count = '', 0
  local at = 1
  while at <= #devices do
    local start = at
    local device_name, device_index, device_tag, device_seen, device_polls, device_next_at = unpacked('<Bc0dc8dBc0',
      devices, at)
    at = device_next_at
    if device_name == mine_name then
      mine_index, mine_tag, mine_seen, mine_polls = device_index, device_tag, device_seen, device_polls
    elseif listen_device_ttl == 0 or device_seen + listen_device_ttl > now then
      others_text, others_count = others_text .. sub(devices, start, at - 1), others_count + 1
      if not others_least or device_index < others_least then
        others_least = device_index
      end
    end
  end
end
if not mine_index and others_count >= 64 then
  return {'devices'}
end
local position_index, position_tag, position_unsure
local cursor_index, cursor_tag, cursor_status, cursor_sum, cursor_tags
do
  local text = fields[4]
  position_index, position_tag, position_unsure = mine_index or -1, mine_tag or '\0\0\0\0\0\0\0\0', 0
  if text then
    position_index, position_tag, position_unsure = unpacked('<dc8d', text)
  end
  cursor_index, cursor_tag, cursor_status = position_index, position_tag, 'ok'
  if cursor_index > state_last then
    cursor_status = 'forked'
  elseif cursor_index < state_from then
    cursor_status = 'truncated'
  else
    local tag
    if cursor_index == state_last then
      tag, cursor_sum = state_tag, state_sum
    elseif cursor_index == state_from then
      tag = state_from_tag
    else
      local head_kind, head_index, head_sum, head_sent, head_tag = unpacked('<BI6I6I6c8', call('LINDEX', mail,
        format('%d', 2 * (cursor_index - state_from - 1))))
      tag, cursor_sum = head_tag, head_sum
    end
    if tag ~= cursor_tag then
      cursor_status = 'forked'
    end
  end
  if cursor_status ~= 'ok' then
    cursor_index, cursor_tag, cursor_sum = state_from, state_from_tag, nil
    if text then
      position_unsure = state_last
    end
  end
end
local waiting
do
  local jobs = keys[5]
  local first = call('ZRANGEBYSCORE', jobs, '-inf', '+inf', 'WITHSCORES', 'LIMIT', '0', '1')
  waiting = first[2] and format('%d', first[2]) or ''
end
if request_max_jobs > 0 then
  waiting = ''
end
call('HDEL', work, '')
local concat, min = table.concat, math.min
do
  local results, ended = {}, {}
  for i = 1, request_ends do
    local is_mine, tag
    do
      local argument = arguments[2 + i]
      local ended_tag, ended_fence, ended_outcome, ended_pause, ended_reason_at = unpacked('<c8dBd', argument)
      local reason = sub(argument, ended_reason_at)
      local text
      text, is_mine = call('HGET', all_work, 'j:' .. ended_tag), false
      if text then
        local job_state, job_attempts, job_fence, job_since, job_process, job_head, job_key, job_reason_at =
          unpacked('<BHddc16c27Bc0', text)
        local is_over = job_state == 3 or job_state == 5
        is_mine = (job_state == 2 or is_over) and job_process == request_process and job_fence == ended_fence
        if is_mine and (ended_outcome == 0 or is_over) then
          call('HDEL', all_work, 'j:' .. ended_tag, 'm:' .. ended_tag)
          if job_key ~= '' then
            local queue, text_2 = call('HGET', all_work, 'o:' .. job_key) or '', nil
            while queue ~= '' and not text_2 do
              local tag_2 = sub(queue, 1, 8)
              text_2, queue = call('HGET', all_work, 'j:' .. tag_2), sub(queue, 9)
              if text_2 then
                local job_state_2, job_attempts_2, job_fence_2, job_since_2, job_process_2, job_head_2, job_key_2,
                  job_reason_at_2 = unpacked('<BHddc16c27Bc0', text_2)
                local reason_2 = sub(text_2, job_reason_at_2)
                job_state_2, job_since_2 = 0, now
                call('HSET', all_work, 'j:' .. tag_2, pack('<BHddc16c27Bc0', job_state_2, job_attempts_2, job_fence_2,
                  job_since_2, job_process_2, job_head_2, #job_key_2, job_key_2) .. reason_2, 'o:' .. job_key, queue)
                all_added[#all_added + 1] = format('%d', 0)
                all_added[#all_added + 1] = tag_2
              end
            end
            if not text_2 then
              call('HDEL', all_work, 'o:' .. job_key)
            end
          end
        elseif is_mine and ended_outcome == 3 then
          do
            job_state, job_since, job_process = 4, now, '\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0'
            if request_max_dead == 0 then
              call('HDEL', all_work, 'j:' .. ended_tag, 'm:' .. ended_tag)
            else
              call('HSET', all_work, 'j:' .. ended_tag, pack('<BHddc16c27Bc0', job_state, job_attempts, job_fence,
                job_since, job_process, job_head, #job_key, job_key) .. reason)
              call('ZADD', all_dead, format('%d', now), ended_tag)
              all_failed = all_failed + 1
            end
            local count = min(all_failed - request_max_dead, 100)
            if count > 0 then
              local oldest = call('ZRANGE', all_dead, '0', format('%d', count - 1))
              for _, old in ipairs(oldest) do
                call('HDEL', all_work, 'j:' .. old, 'm:' .. old)
              end
              call('ZREM', all_dead, unpack(oldest))
              all_failed = all_failed - count
            end
          end
          if job_key ~= '' then
            local queue, text_2 = call('HGET', all_work, 'o:' .. job_key) or '', nil
            while queue ~= '' and not text_2 do
              local tag_2 = sub(queue, 1, 8)
              text_2, queue = call('HGET', all_work, 'j:' .. tag_2), sub(queue, 9)
              if text_2 then
                local job_state_2, job_attempts_2, job_fence_2, job_since_2, job_process_2, job_head_2, job_key_2,
                  job_reason_at_2 = unpacked('<BHddc16c27Bc0', text_2)
                local reason_2 = sub(text_2, job_reason_at_2)
                job_state_2, job_since_2 = 0, now
                call('HSET', all_work, 'j:' .. tag_2, pack('<BHddc16c27Bc0', job_state_2, job_attempts_2, job_fence_2,
                  job_since_2, job_process_2, job_head_2, #job_key_2, job_key_2) .. reason_2, 'o:' .. job_key, queue)
                all_added[#all_added + 1] = format('%d', 0)
                all_added[#all_added + 1] = tag_2
              end
            end
            if not text_2 then
              call('HDEL', all_work, 'o:' .. job_key)
            end
          end
        elseif is_mine and ended_outcome == 1 then
          local time = now + ended_pause
          job_state, job_since, job_process = 0, now, '\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0'
          call('HSET', all_work, 'j:' .. ended_tag, pack('<BHddc16c27Bc0', job_state, job_attempts, job_fence,
            job_since, job_process, job_head, #job_key, job_key) .. reason)
          all_added[#all_added + 1] = format('%d', time)
          all_added[#all_added + 1] = ended_tag
        elseif is_mine and (ended_outcome == 2 or ended_outcome == 4) then
          job_attempts, reason = job_attempts - 1, sub(text, job_reason_at)
          job_state, job_since, job_process = 0, now, '\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0'
          call('HSET', all_work, 'j:' .. ended_tag, pack('<BHddc16c27Bc0', job_state, job_attempts, job_fence,
            job_since, job_process, job_head, #job_key, job_key) .. reason)
          all_added[#all_added + 1] = format('%d', 0)
          all_added[#all_added + 1] = ended_tag
        end
      end
      tag = ended_tag
    end
    results[i] = is_mine and '1' or '0'
    if is_mine then
      ended[tag] = true
    end
  end
  worker_results = concat(results)
  if request_ends > 0 then
    local kept = {}
    for at = 1, #worker_held, 8 do
      local tag = sub(worker_held, at, at + 8 - 1)
      if not ended[tag] then
        kept[#kept + 1] = tag
      end
    end
    worker_held = concat(kept)
  end
end
local harvest_next
local harvest_reply, harvest_room, harvest_bytes, harvest_looks, harvest_taken, harvest_fence, harvest_now,
  harvest_process, harvest_is_blocked = reply, request_max_jobs, request_max_bytes, 1024, {},
  math.max(tonumber(fields[2] or 0), request_fence), now, request_process, fields[3] == '1'
if harvest_room > 0 and not harvest_is_blocked then
  do
    local limit = harvest_room + 1
    local found = call('ZRANGEBYSCORE', all_jobs, '-inf', '+inf', 'WITHSCORES', 'LIMIT', '0', format('%d', limit))
    for i = 1, #found, 2 do
      local time, tag = tonumber(found[i + 1]), found[i]
      if time <= harvest_now and harvest_room > 0 and harvest_bytes > 0 then
        all_removed[#all_removed + 1] = tag
        local fields_2 = call('HMGET', all_work, 'j:' .. tag, 'm:' .. tag)
        if fields_2[1] and fields_2[2] then
          local job_state, job_attempts, job_fence, job_since, job_process, job_head, job_key, job_reason_at =
            unpacked('<BHddc16c27Bc0', fields_2[1])
          if job_state == 0 then
            local is_over
            do
              local body = fields_2[2]
              local head_kind, head_index, head_sum, head_sent = unpacked('<BI6I6I6c8', job_head)
              local life = unpacked('<I6', body)
              is_over = life > 0 and head_sent + life <= harvest_now
            end
            if is_over then
              call('HDEL', all_work, 'j:' .. tag, 'm:' .. tag)
              if job_key ~= '' then
                local queue, text = call('HGET', all_work, 'o:' .. job_key) or '', nil
                while queue ~= '' and not text do
                  local tag_2 = sub(queue, 1, 8)
                  text, queue = call('HGET', all_work, 'j:' .. tag_2), sub(queue, 9)
                  if text then
                    local job_state_2, job_attempts_2, job_fence_2, job_since_2, job_process_2, job_head_2, job_key_2,
                      job_reason_at_2 = unpacked('<BHddc16c27Bc0', text)
                    local reason = sub(text, job_reason_at_2)
                    job_state_2, job_since_2 = 0, harvest_now
                    call('HSET', all_work, 'j:' .. tag_2, pack('<BHddc16c27Bc0', job_state_2, job_attempts_2,
                      job_fence_2, job_since_2, job_process_2, job_head_2, #job_key_2, job_key_2) .. reason, 'o:' ..
                      job_key, queue)
                    all_added[#all_added + 1] = format('%d', 0)
                    all_added[#all_added + 1] = tag_2
                  end
                end
                if not text then
                  call('HDEL', all_work, 'o:' .. job_key)
                end
              end
              harvest_looks = harvest_looks - 1
            else
              local reason = sub(fields_2[1], job_reason_at)
              local body = fields_2[2]
              harvest_fence = math.max(harvest_fence + 1, harvest_now * 1000)
              job_state, job_attempts, job_fence, job_since = 2, job_attempts + 1, harvest_fence, harvest_now
              job_process = harvest_process
              call('HSET', all_work, 'j:' .. tag, pack('<BHddc16c27Bc0', job_state, job_attempts, job_fence, job_since,
                job_process, job_head, #job_key, job_key) .. reason)
              harvest_reply[#harvest_reply + 1] = pack('<Hdc27', job_attempts, job_fence, job_head)
              harvest_reply[#harvest_reply + 1] = body
              harvest_room, harvest_bytes = harvest_room - 1, harvest_bytes - 27 - #body
              harvest_taken[#harvest_taken + 1] = tag
            end
          end
        end
      else
        harvest_next = time
        break
      end
    end
    if not harvest_next and #found == 2 * limit then
      harvest_next = harvest_now
    end
  end
  do
    local kept, i = {}, 1
    while i < #all_added do
      local time, tag = tonumber(all_added[i]), all_added[i + 1]
      if time <= harvest_now and harvest_room > 0 and harvest_bytes > 0 and harvest_looks > 0 then
        local fields_2 = call('HMGET', all_work, 'j:' .. tag, 'm:' .. tag)
        if fields_2[1] and fields_2[2] then
          local job_state, job_attempts, job_fence, job_since, job_process, job_head, job_key, job_reason_at =
            unpacked('<BHddc16c27Bc0', fields_2[1])
          if job_state == 0 then
            local is_over
            do
              local body = fields_2[2]
              local head_kind, head_index, head_sum, head_sent = unpacked('<BI6I6I6c8', job_head)
              local life = unpacked('<I6', body)
              is_over = life > 0 and head_sent + life <= harvest_now
            end
            if is_over then
              call('HDEL', all_work, 'j:' .. tag, 'm:' .. tag)
              if job_key ~= '' then
                local queue, text = call('HGET', all_work, 'o:' .. job_key) or '', nil
                while queue ~= '' and not text do
                  local tag_2 = sub(queue, 1, 8)
                  text, queue = call('HGET', all_work, 'j:' .. tag_2), sub(queue, 9)
                  if text then
                    local job_state_2, job_attempts_2, job_fence_2, job_since_2, job_process_2, job_head_2, job_key_2,
                      job_reason_at_2 = unpacked('<BHddc16c27Bc0', text)
                    local reason = sub(text, job_reason_at_2)
                    job_state_2, job_since_2 = 0, harvest_now
                    call('HSET', all_work, 'j:' .. tag_2, pack('<BHddc16c27Bc0', job_state_2, job_attempts_2,
                      job_fence_2, job_since_2, job_process_2, job_head_2, #job_key_2, job_key_2) .. reason, 'o:' ..
                      job_key, queue)
                    all_added[#all_added + 1] = format('%d', 0)
                    all_added[#all_added + 1] = tag_2
                  end
                end
                if not text then
                  call('HDEL', all_work, 'o:' .. job_key)
                end
              end
              harvest_looks = harvest_looks - 1
            else
              local reason = sub(fields_2[1], job_reason_at)
              local body = fields_2[2]
              harvest_fence = math.max(harvest_fence + 1, harvest_now * 1000)
              job_state, job_attempts, job_fence, job_since = 2, job_attempts + 1, harvest_fence, harvest_now
              job_process = harvest_process
              call('HSET', all_work, 'j:' .. tag, pack('<BHddc16c27Bc0', job_state, job_attempts, job_fence, job_since,
                job_process, job_head, #job_key, job_key) .. reason)
              harvest_reply[#harvest_reply + 1] = pack('<Hdc27', job_attempts, job_fence, job_head)
              harvest_reply[#harvest_reply + 1] = body
              harvest_room, harvest_bytes = harvest_room - 1, harvest_bytes - 27 - #body
              harvest_taken[#harvest_taken + 1] = tag
            end
          end
        end
      else
        kept[#kept + 1], kept[#kept + 2] = all_added[i], tag
        if not harvest_next or time < harvest_next then
          harvest_next = time
        end
      end
      i = i + 2
    end
    all_added = kept
  end
  if call('HLEN', all_work) < 2 * (100000 + all_failed) then
    local at, stop = cursor_index - state_from, state_last - state_from
    cursor_tags = {}
    local max = math.max
    local average = at < stop and max(1, (state_sum - state_from_sum - state_hollow) / stop) or 1
    while harvest_room > 0 and harvest_bytes > 0 and harvest_looks > 0 and at < stop do
      local count = max(1, min(harvest_room, 64, math.floor(harvest_bytes / average), stop - at))
      local elements = call('LRANGE', mail, format('%d', 2 * at), format('%d', 2 * (at + count) - 1))
      if #elements == 0 then
        break
      end
      for i = 1, #elements, 2 do
        local head_kind, head_index, head_sum, head_sent, head_tag = unpacked('<BI6I6I6c8', elements[i])
        local has_room
        do
          local head = elements[i]
          local body = elements[i + 1]
          local life, key_size
          life, key_size, has_room = 0, 0, true
          if #body >= 7 then
            life, key_size = unpacked('<I6B', body)
          end
          local is_whole = head_kind == 77 and #body >= 7 + key_size
          local is_job = head_index <= position_unsure and call('HEXISTS', all_work, 'j:' .. head_tag) == 1
          if is_whole and not is_job and (life == 0 or head_sent + life > harvest_now) then
            local key = string.match(body, '^id=[^\n]*\norder=([^\n]*)\n', 8 + key_size) or ''
            key = sub(key, 1, 255)
            local job_state, job_attempts, job_fence, job_since, job_process, job_head, job_key = 1, 0, 0, harvest_now,
              '\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0', head, key
            local queue = key ~= '' and call('HGET', all_work, 'o:' .. key)
            if queue and #queue >= 8192 then
              has_room = false
            elseif queue then
              call('HSET', all_work, 'o:' .. key, queue .. head_tag, 'j:' .. head_tag, pack('<BHddc16c27Bc0', job_state,
                job_attempts, job_fence, job_since, job_process, job_head, #job_key, job_key), 'm:' .. head_tag, body)
              harvest_bytes = harvest_bytes - 27 - #body
            else
              if key ~= '' then
                call('HSET', all_work, 'o:' .. key, '')
              end
              harvest_fence = max(harvest_fence + 1, harvest_now * 1000)
              job_state, job_attempts, job_fence, job_since = 2, job_attempts + 1, harvest_fence, harvest_now
              job_process = harvest_process
              if body then
                call('HSET', all_work, 'j:' .. head_tag, '' .. pack('<BHddc16c27Bc0', job_state, job_attempts,
                  job_fence, job_since, job_process, job_head, #job_key, job_key), 'm:' .. head_tag, body)
              else
                call('HSET', all_work, 'j:' .. head_tag, '' .. pack('<BHddc16c27Bc0', job_state, job_attempts,
                  job_fence, job_since, job_process, job_head, #job_key, job_key))
              end
              harvest_reply[#harvest_reply + 1] = pack('<Hdc27', job_attempts, job_fence, job_head)
              harvest_reply[#harvest_reply + 1] = body
              harvest_room, harvest_bytes = harvest_room - 1, harvest_bytes - 27 - #body
              harvest_taken[#harvest_taken + 1] = head_tag
            end
          end
        end
        if not has_room then
          harvest_looks, harvest_is_blocked = 0, true
          break
        end
        cursor_index, cursor_tag, cursor_sum, at = head_index, head_tag, head_sum, at + 1
        cursor_tags[head_index] = head_tag
        harvest_looks = harvest_looks - 1
        if harvest_room <= 0 or harvest_bytes <= 0 or harvest_looks <= 0 then
          break
        end
      end
    end
  else
    harvest_is_blocked = true
  end
end
if harvest_is_blocked and (not harvest_next or harvest_next > harvest_now + 1000) then
  harvest_next = harvest_now + 1000
end
local has_more = cursor_index < state_last and not harvest_is_blocked
local is_waiting = harvest_room > 0 and not has_more and not harvest_is_blocked and listen_registration > 0
do
  local has_moved = cursor_index ~= mine_index
  mine_index, mine_tag = cursor_index, cursor_tag
  local cut = mine_index
  if others_least and others_least < cut then
    cut = others_least
  end
  cut = min(cut, state_last - listen_backlog_count, state_from + 65536)
  if listen_backlog_age > 0 and cut > state_from then
    local count = cut - state_from
    local time = now - listen_backlog_age
    local low, high = 0, count
    while low < high do
      local middle = math.floor((low + high) / 2)
      local head_kind, head_index, head_sum, head_sent = unpacked('<BI6I6I6', call('LINDEX', mail, format('%d', 2 *
        middle)))
      if head_sent < time then
        low = middle + 1
      else
        high = middle
      end
    end
    cut = state_from + low
  end
  local deletion_count, deletion_dead_keys, deletion_history
  do
    local cut_2 = cut
    deletion_count = 0
    if cut_2 > state_from then
      if state_keyed > 0 or state_hollow > 0 then
        cut_2 = min(cut_2, state_from + 1024)
        local count = cut_2 - state_from
        local dead_keys, before = nil, state_from_sum
        for first = 0, count - 1, 128 do
          local elements = call('LRANGE', mail, format('%d', 2 * first), format('%d', 2 * min(count, first + 128) - 1))
          for i = 1, #elements, 2 do
            local head_kind, head_index, head_sum = unpacked('<BI6I6', elements[i])
            local body_life, body_key = unpacked('<I6Bc0', elements[i + 1])
            state_hollow = state_hollow - (head_sum - before - 27 - #elements[i + 1])
            before = head_sum
            if body_key ~= '' then
              dead_keys = dead_keys or {}
              dead_keys[#dead_keys + 1] = body_key
              dead_keys[#dead_keys + 1] = head_index
            end
          end
        end
        deletion_dead_keys = dead_keys
      end
      deletion_count = cut_2 - state_from
      do
        local history = call('HGET', box, 'h') or ''
        if sub(history, -8) ~= state_from_tag then
          history = state_from_tag
        end
        for number = math.max(1, deletion_count - 32 + 1), deletion_count - 1 do
          local tag = cursor_tags and cursor_tags[state_from + number]
          if not tag then
            local head_kind, head_index, head_sum, head_sent, head_tag = unpacked('<BI6I6I6c8', call('LINDEX', mail,
              format('%d', 2 * (number - 1))))
            tag = head_tag
          end
          history = history .. tag
        end
        deletion_history = history
      end
      if cut_2 == cursor_index and cursor_sum then
        state_from, state_from_tag, state_from_sum = cut_2, cursor_tag, cursor_sum
      else
        local head_kind, head_index, head_sum, head_sent, head_tag = unpacked('<BI6I6I6c8', call('LINDEX', mail,
          format('%d', 2 * (deletion_count - 1))))
        state_from, state_from_tag, state_from_sum = head_index, head_tag, head_sum
      end
      deletion_history = sub(deletion_history .. state_from_tag, -256)
    end
    if cursor_index < state_from then
      cursor_index, cursor_tag = state_from, state_from_tag
    end
  end
  local is_due, is_freed = listen_ttl > 0 and state_due <= now, listen_ttl == 0 and state_due > 0
  local is_old = listen_device_ttl > 0 and mine_seen + min(listen_device_ttl / 4, 3600000) <= now
  if has_moved or is_waiting or is_old or is_due or is_freed or state_is_new or deletion_count > 0 then
    if deletion_count > 0 then
      call('LTRIM', mail, format('%d', 2 * deletion_count), '-1')
    else
      call('HDEL', box, '')
    end
    if deletion_history then
      call('HSET', box, 'h', deletion_history)
    end
    if state_is_partition_new then
      call('HSET', meta, 'partitions', state_partitions .. ' layout 2')
    end
    if is_waiting then
      local ends = now + listen_registration
      local kept, at = sub(state_rest, 1, state_own_size) .. pack('<c16d', listen_process, ends), state_own_size + 1
      while at <= #state_rest do
        local waiter_process, waiter_ends, waiter_next_at = unpacked('<c16d', state_rest, at)
        at = waiter_next_at
        if waiter_process ~= listen_process and waiter_ends > now then
          kept = kept .. pack('<c16d', waiter_process, waiter_ends)
        end
      end
      state_rest = kept
    end
    if is_due then
      state_due = now + math.floor(listen_ttl / 8)
    elseif is_freed then
      state_due = 0
    end
    if deletion_dead_keys then
      local deleted = 0
      for i = 1, #deletion_dead_keys, 2 do
        local field = 'k:' .. deletion_dead_keys[i]
        if tonumber(call('HGET', box, field)) == deletion_dead_keys[i + 1] then
          deleted = deleted + call('HDEL', box, field)
        end
      end
      state_keyed = state_keyed - deleted
    end
    mine_seen = math.max(now, mine_seen + 1)
    call('HSET', box, 'd', others_text .. pack('<Bc0dc8dBc0', #mine_name, mine_name, mine_index, mine_tag, mine_seen,
      #mine_polls, mine_polls), 'm', pack('<Hc8dc8dc8dddddB', state_partitions, state_epoch, state_last, state_tag,
      state_from, state_from_tag, state_sum, state_from_sum, state_hollow, state_keyed, state_due, state_own_size) ..
      state_rest)
    if is_due then
      local until_ms = format('%d', now + listen_ttl + math.floor(listen_ttl / 8))
      call('PEXPIREAT', box, until_ms)
      if state_last > state_from then
        call('PEXPIREAT', mail, until_ms)
      end
    elseif is_freed then
      call('PERSIST', box)
      if state_last > state_from then
        call('PERSIST', mail)
      end
    end
    local poll_begins = false
    if state_is_new or poll_begins and nil then
      local name, channel = sub(box, #meta + 1), sub(meta, 1, -5) .. 'wake:'
      if state_is_new then
        local growth_epoch, growth_start_index, growth_start_tag, growth_end_index, growth_end_tag = state_epoch,
          state_last, state_tag, state_last, state_tag
        local packed = pack('<c8I6c8I6c8', growth_epoch, growth_start_index, growth_start_tag, growth_end_index,
          growth_end_tag)
        try('PUBLISH', channel .. 'all', pack('<Hc0Hc0', #name, name, #packed, packed))
      end
      if poll_begins and nil then
        local channel_2 = channel .. nil
        try('PUBLISH', channel_2, pack('<Hc0H', #name, name, 0))
      end
    end
  end
end
worker_number, worker_taken = request_number, concat(harvest_taken)
worker_held = worker_held .. worker_taken
position_index, position_tag = cursor_index, cursor_tag
call('HSET', work, 'f', format('%.0f', harvest_fence), 'c', pack('<dc8d', position_index, position_tag,
  position_unsure), 'w:' .. request_process, pack('<dHc0Hc0', worker_number, #worker_results, worker_results,
  #worker_taken, worker_taken) .. worker_held)
if request_max_jobs == 0 and #all_added > 0 then
  waiting = '0'
end
if #all_added > 0 then
  call('ZADD', all_jobs, unpack(all_added))
end
if #all_removed > 0 then
  call('ZREM', all_jobs, unpack(all_removed))
end
reply[3] = harvest_next and format('%d', harvest_next) or waiting
reply[4], reply[5] = has_more and 1 or 0, worker_results
return reply
