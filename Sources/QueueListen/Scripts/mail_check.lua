-- Looks whether anything has changed in many mailboxes at once, for those who wait for them.
-- KEYS[1] meta  then box of each
-- ARGV[1] partitions  [2] process, 16 characters  [3] ms for which it wants to be woken, 0: not at all  [4] ms after
--     which a device is to be seen again, 0: never  then for each: index, epoch and tag of its cursor, device, poll
-- Reply: the numbers of those that are to be read again.
local now = redis.call('TIME')
now = now[1] * 1000 + math.floor(now[2] / 1000)
local process, lease, refresh = ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local poll = process .. ':'
local reply = {}
for i = 2, #KEYS do
  local box, at = KEYS[i], 5 * i - 5
  local found = redis.pcall('HMGET', box, 'm', 'd', 'w')
  local is_same = false
  if not found.err and found[1] then
    local epoch, last, tag, _, _, _, _, _, _, due = struct.unpack('<c8dc8dc8ddddd', found[1])
    -- When its time to live is to be renewed, reading does it.
    is_same = (due == 0 or due > now) and last == tonumber(ARGV[at]) and epoch == ARGV[at + 1] and tag == ARGV[at + 2]
    local position, devices = 1, found[2] or ''
    local is_known = false
    while is_same and position <= #devices do
      local name, _, _, seen, owner
      name, _, _, seen, owner, position = struct.unpack('<Bc0dc8dBc0', devices, position)
      if name == ARGV[at + 3] then is_known = string.match(owner, '^%S*') == poll .. ARGV[at + 4] and (refresh == 0 or seen + refresh > now) end
    end
    is_same = is_same and is_known
    if is_same and lease > 0 then
      local waiters, old, fresh = {}, found[3] or '', false
      position = 1
      while position <= #old do
        local other, ends
        other, ends, position = struct.unpack('<c16d', old, position)
        if other == process then
          fresh = ends > now + lease / 2
        elseif ends > now then
          waiters[#waiters + 1] = struct.pack('<c16d', other, ends)
        end
      end
      if not fresh then
        waiters[#waiters + 1] = struct.pack('<c16d', process, now + lease)
        redis.call('HDEL', box, '')
        redis.call('HSET', box, 'w', table.concat(waiters))
      end
    end
  end
  if not is_same then reply[#reply + 1] = i - 1 end
end
return reply
