-- Made from Sources/QueueListen/Lua by scripts/lua.
local keys = KEYS
local meta, box, mail, own_limits = keys[1], keys[2], keys[3], ARGV[2]
local unpacked = struct.unpack
local target_partitions, target_new_epoch = unpacked('<Hc8', ARGV[1])
local state_partitions, state_epoch, state_last, state_tag, state_from, state_from_tag, state_sum, state_from_sum,
  state_hollow, state_keyed, state_due, state_own_size, state_rest_at, state_rest, state_is_new, state_is_partition_new
local call, try = redis.call, redis.pcall
do
  local text, count = try('HGET', box, 'm'), try('LLEN', mail)
  if text then
    if text.err then
      return {'foreign', box}
    end
    state_partitions, state_epoch, state_last, state_tag, state_from, state_from_tag, state_sum, state_from_sum,
      state_hollow, state_keyed, state_due, state_own_size, state_rest_at = unpacked('<Hc8dc8dc8dddddB', text)
    if state_partitions ~= target_partitions then
      return {'partitions', string.format('%d', state_partitions)}
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
local waiters = string.sub(state_rest, state_own_size + 1)
local now
do
  local time = call('TIME')
  now = time[1] * 1000 + math.floor(time[2] / 1000)
end
local life = 0
if own_limits ~= '' then
  local limits_max_messages, limits_max_bytes, limits_when_full, limits_max_age, limits_ttl = unpacked('<ddBddddd',
    own_limits)
  life = limits_ttl
end
local reserve = math.floor(life / 8)
state_due, state_own_size = life > 0 and now + reserve or 0, #own_limits
call('HSET', box, 'm', struct.pack('<Hc8dc8dc8dddddB', state_partitions, state_epoch, state_last, state_tag, state_from,
  state_from_tag, state_sum, state_from_sum, state_hollow, state_keyed, state_due, state_own_size) .. own_limits ..
  waiters)
if state_is_partition_new then
  call('HSET', meta, 'partitions', state_partitions .. ' layout 2')
end
for _, key in ipairs({box, mail}) do
  if life > 0 then
    call('PEXPIREAT', key, string.format('%d', now + life + reserve))
  else
    call('PERSIST', key)
  end
end
if state_is_new then
  local devices = call('HGET', box, 'd') or ''
  if state_is_new then
    local all, at = '', 1
    while at <= #devices do
      local device_name, device_index, device_tag, device_seen, device_polls, device_next_at = unpacked('<Bc0dc8dBc0',
        devices, at)
      at = device_next_at
      device_index, device_tag = -1, '\0\0\0\0\0\0\0\0'
      all = all .. struct.pack('<Bc0dc8dBc0', #device_name, device_name, device_index, device_tag, device_seen,
        #device_polls, device_polls)
    end
    devices = all
  end
  if devices ~= '' then
    call('HSET', box, 'd', devices)
  end
  local name = string.sub(box, #meta + 1)
  local channel = string.sub(meta, 1, -5) .. 'wake:all'
  try('PUBLISH', channel, struct.pack('<Hc0H', #name, name, 0))
end
return {'ok'}
