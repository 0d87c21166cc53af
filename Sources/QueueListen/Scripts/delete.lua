-- Made from Sources/QueueListen/Lua by scripts/lua.
local keys = KEYS
local meta, box, mail = keys[1], keys[2], keys[3]
local unpacked = struct.unpack
local target_partitions = unpacked('<Hc8', ARGV[1])
local state_partitions, state_epoch, state_last, state_tag, state_from, state_from_tag, state_sum, state_from_sum,
  state_hollow, state_keyed, state_due, state_own_size, state_rest_at, state_rest
local sub, try = string.sub, redis.pcall
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
    end
    state_partitions = target_partitions
    state_last, state_tag, state_from = 0, '\0\0\0\0\0\0\0\0', 0
    state_own_size = 0
    state_rest = ''
  end
  if count ~= 0 then
    if type(count) == 'table' then
      return {'foreign', mail}
    end
    local tail = redis.call('LINDEX', mail, '-2')
    if count % 2 == 1 or #tail ~= 27 then
      return {'foreign', mail}
    end
    local head_kind, head_index, head_sum, head_sent, head_tag = unpacked('<BI6I6I6c8', tail)
    if count ~= 2 * (state_last - state_from) or head_index ~= state_last or head_tag ~= state_tag then
      local first = redis.call('LRANGE', mail, '0', '1')
      if #first[1] ~= 27 then
        return {'foreign', mail}
      end
      local first_head_kind, first_head_index, first_head_sum = unpacked('<BI6I6', first[1])
      state_last, state_tag = head_index, head_tag
      state_from, state_from_sum = head_index - count / 2, first_head_sum - 27 - #first[2]
    end
  elseif state_last > state_from then
    state_from = state_last
  end
end
do
  local work = keys[4]
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
end
local existed = redis.call('UNLINK', box, mail, keys[4], keys[5], keys[6])
local name, channel, at = sub(box, #meta + 1), sub(meta, 1, -5) .. 'wake:', state_own_size + 1
while at <= #state_rest do
  local waiter_process, waiter_ends, waiter_next_at = unpacked('<c16d', state_rest, at)
  at = waiter_next_at
  local channel_2 = channel .. waiter_process
  try('PUBLISH', channel_2, struct.pack('<Hc0H', #name, name, 0))
end
return {'ok', state_last - state_from, existed > 0 and 1 or 0}
