-- Checks for many mailboxes at once whether anything has changed for the calls that wait for them. Preceded by
-- mail_head.
-- KEYS[1] meta  then the box of each
-- ARGV[1] process, 16 characters  [2] ms for which it registers to be notified, 0: not at all  [3] ms after which a
--     device's last-seen time must be renewed, 0: never  then for each WAIT followed by its device
-- Reply: the numbers of those that must be read again.

-- epoch, index and tag of the cursor, number of the poll; then the device
local WAIT = '<c8dc8d'
local time = call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local process, lifetime, refresh = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local reply = {}
for i = 2, #KEYS do
  local box = KEYS[i]
  local cursor_epoch, cursor_index, cursor_tag, poll, device_at = unpacked(WAIT, ARGV[i + 2])
  local device, current = sub(ARGV[i + 2], device_at), pack(POLL, process, poll)
  local fields = try('HMGET', box, 'm', 'd')
  local is_same = false
  if not fields.err and fields[1] then
    local state, devices = fields[1], fields[2] or ''
    local partitions, epoch, last, tag, from, from_tag, sum, from_sum, hollow, keyed, due, own_size, rest_at =
      unpacked(STATE, state)
    -- If the time to live must be renewed, a read does it.
    is_same = (due == 0 or due > now) and last == cursor_index and epoch == cursor_epoch and tag == cursor_tag
    local at, is_known = 1, false
    while is_same and not is_known and at <= #devices do
      local name, acknowledged, acknowledged_tag, seen, polls
      name, acknowledged, acknowledged_tag, seen, polls, at = unpacked(DEVICE, devices, at)
      if name == device then
        is_known = true
        is_same = sub(polls, 1, POLL_SIZE) == current and (refresh == 0 or seen + refresh > now)
      end
    end
    is_same = is_same and is_known
    if is_same and lifetime > 0 then
      local waiters, is_registered = '', false
      at = rest_at + own_size
      while at <= #state do
        local other, ends
        other, ends, at = unpacked(WAITER, state, at)
        if other == process then
          is_registered = ends > now + lifetime / 2
        elseif ends > now then
          waiters = waiters .. pack(WAITER, other, ends)
        end
      end
      if not is_registered then
        -- The first write removes something: Redis allows that at maxmemory.
        call('HDEL', box, '')
        call('HSET', box, 'm', sub(state, 1, rest_at + own_size - 1) .. waiters .. pack(WAITER, process, now + lifetime))
      end
    end
  end
  if not is_same then reply[#reply + 1] = i - 1 end
end
return reply
