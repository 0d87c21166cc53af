-- Made from Sources/QueueListen/Lua by scripts/lua.
local arguments = ARGV
local process, lifetime, refresh = arguments[1], tonumber(arguments[2]), tonumber(arguments[3])
local now
do
  local time = redis.call('TIME')
  now = time[1] * 1000 + math.floor(time[2] / 1000)
end
local reply = {}
local keys, pack, sub, unpacked = KEYS, struct.pack, string.sub, struct.unpack
for i = 2, #keys do
  local is_same
  repeat
    local box = keys[i]
    local argument = arguments[i + 2]
    local wait_epoch, wait_index, wait_tag, wait_poll, wait_device_at = unpacked('<c8dc8d', argument)
    local name = sub(argument, wait_device_at)
    local poll = pack('<c16d', process, wait_poll)
    local fields = redis.pcall('HMGET', box, 'm', 'd')
    if fields.err or not fields[1] then
      is_same = false
      break
    end
    local state_partitions, state_epoch, state_last, state_tag, state_from, state_from_tag, state_sum, state_from_sum,
      state_hollow, state_keyed, state_due, state_own_size, state_rest_at = unpacked('<Hc8dc8dc8dddddB', fields[1])
    local is_same_2 = (state_due == 0 or state_due > now) and state_last == wait_index and state_epoch == wait_epoch and
      state_tag == wait_tag
    if is_same_2 then
      local devices = fields[2] or ''
      local at, is_current = 1, false
      while at <= #devices do
        local device_name, device_index, device_tag, device_seen, device_polls, device_next_at = unpacked('<Bc0dc8dBc0',
          devices, at)
        at = device_next_at
        if device_name == name then
          is_current = sub(device_polls, 1, 24) == poll and (refresh == 0 or device_seen + refresh > now)
          break
        end
      end
      is_same_2 = is_current
    end
    if is_same_2 and lifetime > 0 then
      local text = fields[1]
      local waiters, is_registered, at = '', false, state_rest_at + state_own_size
      while at <= #text do
        local waiter_process, waiter_ends, waiter_next_at = unpacked('<c16d', text, at)
        at = waiter_next_at
        if waiter_process == process then
          is_registered = waiter_ends > now + lifetime / 2
        elseif waiter_ends > now then
          waiters = waiters .. pack('<c16d', waiter_process, waiter_ends)
        end
      end
      if not is_registered then
        redis.call('HDEL', box, '')
        redis.call('HSET', box, 'm', sub(text, 1, state_rest_at + state_own_size - 1) .. waiters .. pack('<c16d',
          process, now + lifetime))
      end
    end
    is_same = is_same_2
  until true
  if not is_same then
    reply[#reply + 1] = i - 1
  end
end
return reply
