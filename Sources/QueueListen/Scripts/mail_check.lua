-- Checks for many mailboxes at once whether anything has changed for the calls that wait for them.
-- KEYS[1] meta  then the box of each
-- ARGV[1] partitions  [2] process, 16 characters  [3] ms for which it registers to be notified, 0: not at all  [4] ms
--     after which a device's last-seen time must be renewed, 0: never  then for each: index, epoch and tag of its
--     cursor, device, number of its poll
-- Reply: the numbers of those that must be read again.
-- Formats as in mail_head.
local STATE, DEVICE, WAITER = '<c8dc8dc8ddddd', '<Bc0dc8dBc0', '<c16d'
local unpacked, pack = struct.unpack, struct.pack
local now = redis.call('TIME')
now = now[1] * 1000 + math.floor(now[2] / 1000)
local process, lifetime, refresh = ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local poll_prefix = process .. ':'
local reply = {}
for i = 2, #KEYS do
  local box, at = KEYS[i], 5 * i - 5
  local cursor_index, cursor_epoch, cursor_tag = tonumber(ARGV[at]), ARGV[at + 1], ARGV[at + 2]
  local device, poll = ARGV[at + 3], poll_prefix .. ARGV[at + 4]
  local fields = redis.pcall('HMGET', box, 'm', 'd', 'w')
  local is_same = false
  if not fields.err and fields[1] then
    local state, devices, old = fields[1], fields[2] or '', fields[3] or ''
    local epoch, last, tag, from, from_tag, sum, from_sum, hollow, keyed, due = unpacked(STATE, state)
    -- When the time to live must be renewed, a read does it.
    is_same = (due == 0 or due > now) and last == cursor_index and epoch == cursor_epoch and tag == cursor_tag
    local position = 1
    local is_known = false
    while is_same and position <= #devices do
      local name, acknowledged, acknowledged_tag, seen, polls
      name, acknowledged, acknowledged_tag, seen, polls, position = unpacked(DEVICE, devices, position)
      if name == device then
        is_known = string.match(polls, '^%S*') == poll and (refresh == 0 or seen + refresh > now)
      end
    end
    is_same = is_same and is_known
    if is_same and lifetime > 0 then
      local waiters, is_registered = {}, false
      position = 1
      while position <= #old do
        local other, ends
        other, ends, position = unpacked(WAITER, old, position)
        if other == process then
          is_registered = ends > now + lifetime / 2
        elseif ends > now then
          waiters[#waiters + 1] = pack(WAITER, other, ends)
        end
      end
      if not is_registered then
        waiters[#waiters + 1] = pack(WAITER, process, now + lifetime)
        -- The first write removes something: Redis allows that at maxmemory.
        redis.call('HDEL', box, '')
        redis.call('HSET', box, 'w', table.concat(waiters))
      end
    end
  end
  if not is_same then reply[#reply + 1] = i - 1 end
end
return reply
