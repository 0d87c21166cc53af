-- Made from Sources/QueueListen/Lua by scripts/lua.
local arguments, keys = ARGV, KEYS
local meta, box, mail, forgotten, expected = keys[1], keys[2], keys[3], arguments[2], arguments[3]
local unpacked = struct.unpack
local target_partitions = unpacked('<Hc8', arguments[1])
local state_partitions, state_epoch, state_last, state_tag, state_from, state_from_tag, state_sum, state_from_sum,
  state_hollow, state_keyed, state_due, state_own_size, state_rest_at, state_rest, state_is_new
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
    end
    state_partitions, state_is_new = target_partitions, true
    state_last, state_tag, state_from = 0, '\0\0\0\0\0\0\0\0', 0
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
      state_last, state_tag, state_is_new = head_index, head_tag, true
      state_from, state_from_sum = head_index - count / 2, first_head_sum - 27 - #first[2]
    end
  elseif state_last > state_from then
    state_from = state_last
  end
end
if state_is_new then
  return {'ok', 0}
end
local devices, kept, at = call('HGET', box, 'd') or '', '', 1
while at <= #devices do
  local start = at
  local device_name, device_index, device_tag, device_seen, device_polls, device_next_at = unpacked('<Bc0dc8dBc0',
    devices, at)
  at = device_next_at
  if device_name ~= forgotten or expected ~= '' and device_seen ~= tonumber(expected) then
    kept = kept .. string.sub(devices, start, at - 1)
  end
end
if #kept == #devices then
  return {'ok', 0}
end
call('HDEL', box, '')
call('HSET', box, 'd', kept)
return {'ok', 1}
