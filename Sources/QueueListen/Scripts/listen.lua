-- Made from Sources/QueueListen/Lua by scripts/lua.
local keys = KEYS
local meta, box, mail, text = keys[1], keys[2], keys[3], ARGV[1]
local unpacked = struct.unpack
local target_partitions, target_new_epoch, target_request_at = unpacked('<Hc8', text)
local now
local call = redis.call
do
  local time = call('TIME')
  now = time[1] * 1000 + math.floor(time[2] / 1000)
end
local state_partitions, state_epoch, state_last, state_tag, state_from, state_from_tag, state_sum, state_from_sum,
  state_hollow, state_keyed, state_due, state_own_size, state_rest_at, state_rest, state_is_new, state_is_partition_new
local try = redis.pcall
do
  local text_2, count = try('HGET', box, 'm'), try('LLEN', mail)
  if text_2 then
    if text_2.err then
      return {'foreign', box}
    end
    state_partitions, state_epoch, state_last, state_tag, state_from, state_from_tag, state_sum, state_from_sum,
      state_hollow, state_keyed, state_due, state_own_size, state_rest_at = unpacked('<Hc8dc8dc8dddddB', text_2)
    if state_partitions ~= target_partitions then
      return {'partitions', string.format('%d', state_partitions)}
    end
    state_rest = state_rest_at <= #text_2 and string.sub(text_2, state_rest_at) or ''
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
local devices = call('HGET', box, 'd') or ''
local pack = struct.pack
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
local request_reads_ahead, request_requires_device
local request_phase, request_process, request_poll, request_registration, request_cursor_index, request_cursor_epoch,
  request_cursor_tag, request_max_messages, request_max_bytes, request_ttl, request_backlog_count, request_backlog_age,
  request_device_ttl = unpacked('<Bc16dddc8c8dddddd', text, target_request_at)
request_requires_device = request_phase >= 8
if request_requires_device then
  request_phase = request_phase - 8
end
request_reads_ahead = request_phase >= 4
if request_reads_ahead then
  request_phase = request_phase - 4
end
if state_own_size > 0 then
  local limits_max_messages, limits_max_bytes, limits_when_full, limits_max_age, limits_ttl, limits_backlog_count,
    limits_backlog_age, limits_device_ttl = unpacked('<ddBddddd', state_rest)
  request_ttl, request_backlog_count, request_backlog_age, request_device_ttl = limits_ttl, limits_backlog_count,
    limits_backlog_age, limits_device_ttl
end
local mine_index, mine_tag
local mine_name, mine_seen, mine_polls = ARGV[2], 0, ''
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
    elseif request_device_ttl == 0 or device_seen + request_device_ttl > now then
      others_text, others_count = others_text .. string.sub(devices, start, at - 1), others_count + 1
      if not others_least or device_index < others_least then
        others_least = device_index
      end
    end
  end
end
if not mine_index and request_requires_device then
  return {'unknown'}
end
local poll_begins, poll_is_current, poll_rival
do
  poll_begins, poll_is_current = request_phase == 1, false
  local is_known, has_begun, oldest, at = false, false, nil, 1
  while at <= #mine_polls do
    local poll_process, poll_number, poll_next_at = unpacked('<c16d', mine_polls, at)
    at = poll_next_at
    if poll_process == request_process then
      if at == 25 then
        poll_is_current = poll_number == request_poll
      end
      is_known, has_begun = true, poll_number >= request_poll
    elseif at == 25 then
      poll_rival = poll_process
    end
    oldest = poll_number
  end
  if mine_polls ~= '' then
    if request_phase == 0 and not has_begun and (is_known or #mine_polls < 96 or oldest < request_poll) then
      poll_begins = true
    end
    if not poll_is_current and (request_phase == 0 and not poll_begins or poll_begins and has_begun) then
      local position_epoch, position_index, position_tag, position_now = state_epoch, state_from, state_from_tag, now
      return {'superseded', pack('<c8dc8d', position_epoch, position_index, position_tag, position_now)}
    end
  end
end
if not mine_index and others_count >= 64 then
  return {'devices'}
end
local cursor_sum
local cursor_index, cursor_tag, cursor_status = request_cursor_index, request_cursor_tag, 'ok'
if cursor_index < 0 then
  cursor_index, cursor_tag = mine_index or state_from, mine_tag or state_from_tag
  if mine_index == -1 then
    cursor_status = 'reset'
  end
elseif request_cursor_epoch ~= state_epoch then
  cursor_status = 'reset'
end
if cursor_status == 'ok' then
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
        string.format('%d', 2 * (cursor_index - state_from - 1))))
      tag, cursor_sum = head_tag, head_sum
    end
    if tag ~= cursor_tag then
      cursor_status = 'forked'
    end
  end
end
local is_mine_new, has_moved = not mine_index, false
if is_mine_new then
  mine_index, mine_tag = state_from, state_from_tag
end
if cursor_status == 'ok' then
  if cursor_index > mine_index and not request_reads_ahead then
    mine_index, mine_tag, has_moved = cursor_index, cursor_tag, true
  end
else
  if cursor_status ~= 'truncated' and request_phase < 2 and mine_index ~= -1 then
    mine_index, has_moved = -1, true
  end
  cursor_index, cursor_tag = state_from, state_from_tag
end
local cut = mine_index
if others_least and others_least < cut then
  cut = others_least
end
cut = math.min(cut, state_last - request_backlog_count, state_from + 65536)
if request_backlog_age > 0 and cut > state_from then
  local count = cut - state_from
  local time = now - request_backlog_age
  local low, high = 0, count
  while low < high do
    local middle = math.floor((low + high) / 2)
    local head_kind, head_index, head_sum, head_sent = unpacked('<BI6I6I6', call('LINDEX', mail, string.format('%d', 2 *
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
    local format = string.format
    if state_keyed > 0 or state_hollow > 0 then
      local min = math.min
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
      if string.sub(history, -8) ~= state_from_tag then
        history = state_from_tag
      end
      for number = math.max(1, deletion_count - 32 + 1), deletion_count - 1 do
        local tag = nil
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
    deletion_history = string.sub(deletion_history .. state_from_tag, -256)
  end
  if cursor_index < state_from then
    cursor_index, cursor_tag = state_from, state_from_tag
  end
end
local position_epoch, position_index, position_tag, position_now = state_epoch, cursor_index, cursor_tag, now
local reply = {cursor_status, pack('<c8dc8d', position_epoch, position_index, position_tag, position_now)}
if cursor_status == 'ok' then
  local at = cursor_index - state_from + deletion_count
  local stop = state_last - state_from + deletion_count
  local max_messages = request_max_messages
  local max_bytes = request_max_bytes
  if at < stop and max_messages > 0 then
    local min = math.min
    max_messages, max_bytes = min(max_messages, 1000), min(max_bytes, 1048576)
    local max = math.max
    local average = max(1, (state_sum - state_from_sum - state_hollow) / (state_last - state_from))
    local size = 0
    local format = string.format
    while at < stop and max_messages > 0 and size < max_bytes do
      local n = max(1, min(max_messages, math.floor((max_bytes - size) / average), stop - at))
      local elements = call('LRANGE', mail, format('%d', 2 * at), format('%d', 2 * (at + n) - 1))
      if #elements == 0 then
        break
      end
      for i = 1, #elements, 2 do
        size = size + #elements[i] + #elements[i + 1]
        if size > max_bytes and #reply > 2 then
          break
        end
        reply[#reply + 1], reply[#reply + 2] = elements[i], elements[i + 1]
        at, max_messages = at + 1, max_messages - 1
      end
    end
  end
end
local is_waiting = #reply == 2 and cursor_status == 'ok' and request_registration > 0
local is_due, is_freed = request_ttl > 0 and state_due <= now, request_ttl == 0 and state_due > 0
if is_due or is_freed or state_is_new or deletion_count > 0 or poll_begins or is_mine_new or has_moved or is_waiting or
  request_phase == 3 then
  if deletion_count > 0 then
    call('LTRIM', mail, string.format('%d', 2 * deletion_count), '-1')
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
    local ends = now + request_registration
    local kept, at = string.sub(state_rest, 1, state_own_size) .. pack('<c16d', request_process, ends), state_own_size +
      1
    while at <= #state_rest do
      local waiter_process, waiter_ends, waiter_next_at = unpacked('<c16d', state_rest, at)
      at = waiter_next_at
      if waiter_process ~= request_process and waiter_ends > now then
        kept = kept .. pack('<c16d', waiter_process, waiter_ends)
      end
    end
    state_rest = kept
  end
  if (poll_begins or is_mine_new) and not poll_is_current then
    local kept, at = pack('<c16d', request_process, request_poll), 1
    while at <= #mine_polls do
      local poll_process, poll_number, poll_next_at = unpacked('<c16d', mine_polls, at)
      at = poll_next_at
      if poll_process ~= request_process and #kept < 96 then
        kept = kept .. pack('<c16d', poll_process, poll_number)
      end
    end
    mine_polls = kept
  end
  if is_due then
    state_due = now + math.floor(request_ttl / 8)
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
    local until_ms = string.format('%d', now + request_ttl + math.floor(request_ttl / 8))
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
  if state_is_new or poll_begins and poll_rival then
    local name, channel = string.sub(box, #meta + 1), string.sub(meta, 1, -5) .. 'wake:'
    if state_is_new then
      local growth_epoch, growth_start_index, growth_start_tag, growth_end_index, growth_end_tag = state_epoch,
        state_last, state_tag, state_last, state_tag
      local packed = pack('<c8I6c8I6c8', growth_epoch, growth_start_index, growth_start_tag, growth_end_index,
        growth_end_tag)
      try('PUBLISH', channel .. 'all', pack('<Hc0Hc0', #name, name, #packed, packed))
    end
    if poll_begins and poll_rival then
      local channel_2 = channel .. poll_rival
      try('PUBLISH', channel_2, pack('<Hc0H', #name, name, 0))
    end
  end
end
return reply
