-- Made from Sources/QueueListen/Lua by scripts/lua.
local keys = KEYS
local meta, box, mail = keys[1], keys[2], keys[3]
local unpacked = struct.unpack
local target_partitions, target_new_epoch = unpacked('<Hc8', ARGV[1])
local now
local call = redis.call
do
  local time = call('TIME')
  now = time[1] * 1000 + math.floor(time[2] / 1000)
end
local state_partitions, state_epoch, state_last, state_tag, state_from, state_from_tag, state_sum, state_from_sum,
  state_hollow, state_keyed, state_due, state_own_size, state_rest_at, state_rest, state_is_new
local format, try = string.format, redis.pcall
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
    state_rest = state_rest_at <= #text and string.sub(text, state_rest_at) or ''
  else
    do
      local layout = try('HGET', meta, 'partitions')
      if type(layout) == 'table' then
        return {'foreign', meta}
      end
      if layout and layout ~= target_partitions .. ' layout 2' then
        return {'partitions', layout}
      end
    end
    state_partitions, state_epoch, state_is_new = target_partitions, target_new_epoch, true
    state_last, state_tag, state_from, state_sum, state_from_sum = 0, '\0\0\0\0\0\0\0\0', 0, 0, 0
    state_hollow, state_own_size = 0, 0
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
      state_from, state_from_sum = head_index - count / 2, first_head_sum - 27 - #first[2]
      state_hollow = 0
    end
  elseif state_last > state_from then
    state_from, state_from_sum, state_hollow = state_last, state_sum, 0
  end
end
if state_is_new and state_last == 0 then
  return {}
end
local packed = call('HGET', box, 'd') or ''
if state_is_new then
  packed = ''
end
local devices
do
  local at
  devices, at = {}, 1
  while at <= #packed do
    local device_name, device_index, device_tag, device_seen, device_polls, device_next_at = unpacked('<Bc0dc8dBc0',
      packed, at)
    at = device_next_at
    devices[#devices + 1] = device_name
    devices[#devices + 1] = format('%d', math.max(device_index, 0))
    devices[#devices + 1] = device_tag
    devices[#devices + 1] = format('%d', device_seen)
  end
end
local waiters
do
  local at
  waiters, at = 0, state_own_size + 1
  while at <= #state_rest do
    local waiter_process, waiter_ends, waiter_next_at = unpacked('<c16d', state_rest, at)
    at = waiter_next_at
    if waiter_ends > now then
      waiters = waiters + 1
    end
  end
end
return {'ok', format('%d', now), state_epoch, format('%d', state_last), format('%d', state_from), format('%d', state_sum
  - state_from_sum - state_hollow), string.sub(state_rest, 1, state_own_size), call('PTTL', box), waiters, devices}
