-- Made from Sources/QueueListen/Lua by scripts/lua.
local keys = KEYS
local meta, box, mail = keys[1], keys[2], keys[3]
local arguments = ARGV
local after, max_messages, max_bytes = tonumber(arguments[2]), tonumber(arguments[3]), tonumber(arguments[4])
local target_partitions, target_new_epoch = struct.unpack('<Hc8', arguments[1])
local now
do
  local time = redis.call('TIME')
  now = time[1] * 1000 + math.floor(time[2] / 1000)
end
local state_partitions, state_epoch, state_last, state_tag, state_from, state_from_tag, state_sum, state_from_sum,
  state_hollow, state_keyed, state_due, state_own_size, state_rest_at, state_rest
local try = redis.pcall
do
  local text, count = try('HGET', box, 'm'), try('LLEN', mail)
  if text then
    if text.err then
      return {'foreign', box}
    end
    state_partitions, state_epoch, state_last, state_tag, state_from, state_from_tag, state_sum, state_from_sum,
      state_hollow, state_keyed, state_due, state_own_size, state_rest_at = struct.unpack('<Hc8dc8dc8dddddB', text)
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
    state_partitions, state_epoch = target_partitions, target_new_epoch
    state_last, state_tag, state_from, state_from_tag, state_sum, state_from_sum = 0, '\0\0\0\0\0\0\0\0', 0,
      '\0\0\0\0\0\0\0\0', 0, 0
    state_hollow = 0
  end
  if count ~= 0 then
    if type(count) == 'table' then
      return {'foreign', mail}
    end
    local tail = redis.call('LINDEX', mail, '-2')
    if count % 2 == 1 or #tail ~= 27 then
      return {'foreign', mail}
    end
    local head_kind, head_index, head_sum, head_sent, head_tag = struct.unpack('<BI6I6I6c8', tail)
    if count ~= 2 * (state_last - state_from) or head_index ~= state_last or head_tag ~= state_tag then
      local first = redis.call('LRANGE', mail, '0', '1')
      if #first[1] ~= 27 then
        return {'foreign', mail}
      end
      local first_head_kind, first_head_index, first_head_sum = struct.unpack('<BI6I6', first[1])
      state_epoch, state_last, state_tag, state_sum = target_new_epoch, head_index, head_tag, head_sum
      state_from, state_from_tag, state_from_sum = head_index - count / 2, '\0\0\0\0\0\0\0\0', first_head_sum - 27 -
        #first[2]
      state_hollow = 0
    end
  elseif state_last > state_from then
    state_from, state_from_tag, state_from_sum, state_hollow = state_last, state_tag, state_sum, 0
  end
end
local position_index, position_tag
local position_epoch, position_now = state_epoch, now
position_index = math.max(after or state_from, state_from)
position_tag = position_index == state_from and state_from_tag or '\0\0\0\0\0\0\0\0'
local reply = {'ok', struct.pack('<c8dc8d', position_epoch, position_index, position_tag, position_now)}
do
  local at = position_index - state_from
  local stop = state_last - state_from
  local max_messages_2 = max_messages
  local max_bytes_2 = max_bytes
  if at < stop and max_messages_2 > 0 then
    local min = math.min
    max_messages_2, max_bytes_2 = min(max_messages_2, 1000), min(max_bytes_2, 1048576)
    local max = math.max
    local average = max(1, (state_sum - state_from_sum - state_hollow) / (state_last - state_from))
    local size = 0
    local format = string.format
    while at < stop and max_messages_2 > 0 and size < max_bytes_2 do
      local n = max(1, min(max_messages_2, math.floor((max_bytes_2 - size) / average), stop - at))
      local elements = redis.call('LRANGE', mail, format('%d', 2 * at), format('%d', 2 * (at + n) - 1))
      if #elements == 0 then
        break
      end
      for i = 1, #elements, 2 do
        size = size + #elements[i] + #elements[i + 1]
        if size > max_bytes_2 and #reply > 2 then
          break
        end
        reply[#reply + 1], reply[#reply + 2] = elements[i], elements[i + 1]
        at, max_messages_2 = at + 1, max_messages_2 - 1
      end
    end
  end
end
return reply
