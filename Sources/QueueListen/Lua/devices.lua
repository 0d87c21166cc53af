-- The devices that read a mailbox, and the processes that wait for them. A device acknowledges the messages that it has
-- read, and messages stay in the mailbox until all of its devices have acknowledged them.

-- Returns whether a poll, in packed form, is the current one of its device, and the last-seen time of the device need
-- not be renewed. It must be renewed after `refresh` ms; 0: never.
local function is_poll_current(devices, name, poll, refresh, now)
  local at, is_current = 1, false
  while at <= #devices do
    local device = Device.read(devices, at)
    at = device.next_at
    if device.name == name then
      is_current = string.sub(device.polls, 1, Poll.size) == poll and (refresh == 0 or device.seen + refresh > now)
      break
    end
  end
  return is_current
end

-- Registers a process for `lifetime` ms, unless at least half of this time is left of an earlier registration.
local function renew_registration(box, text, state, process, lifetime, now)
  local waiters, is_registered, at = '', false, state.rest_at + state.own_size
  while at <= #text do
    local waiter = Waiter.read(text, at)
    at = waiter.next_at
    if waiter.process == process then
      is_registered = waiter.ends > now + lifetime / 2
    elseif waiter.ends > now then
      waiters = waiters .. Waiter.write(waiter)
    end
  end
  if not is_registered then
    -- The first write removes something: Redis allows that at maxmemory.
    redis.call('HDEL', box, '')
    redis.call('HSET', box, 'm', string.sub(text, 1, state.rest_at + state.own_size - 1) .. waiters
      .. struct.pack(Waiter.format, process, now + lifetime))
  end
end

-- Returns whether nothing has changed for a call that waits, and then registers its process again. A mailbox whose time
-- to live must be renewed counts as changed, because the read that follows renews it.
local function is_wait_current(box, argument, process, lifetime, refresh, now)
  local wait = Wait.read(argument)
  local name = string.sub(argument, wait.device_at)
  local poll = struct.pack(Poll.format, process, wait.poll)
  local fields = redis.pcall('HMGET', box, 'm', 'd')
  if fields.err or not fields[1] then return false end
  local state = State.read(fields[1])
  local is_same = (state.due == 0 or state.due > now) and state.last == wait.index and state.epoch == wait.epoch
    and state.tag == wait.tag
  if is_same then
    is_same = is_poll_current(fields[2] or '', name, poll, refresh, now)
  end
  if is_same and lifetime > 0 then
    renew_registration(box, fields[1], state, process, lifetime, now)
  end
  return is_same
end

-- Checks for many mailboxes at once whether anything has changed for the calls that wait for them.
-- KEYS   [1] meta, then the box of each mailbox
-- ARGV   [1] process, 16 characters  [2] ms for which it registers to be notified, 0: not at all  [3] ms after which a
--        device's last-seen time must be renewed, 0: never. Then for each mailbox Wait, followed by the device
-- Reply  the numbers of the mailboxes that must be read again
function entry.check(keys, arguments)
  local process, lifetime, refresh = arguments[1], tonumber(arguments[2]), tonumber(arguments[3])
  local now = read_time()
  local reply = {}
  for i = 2, #keys do
    local is_same = is_wait_current(keys[i], arguments[i + 2], process, lifetime, refresh, now)
    if not is_same then reply[#reply + 1] = i - 1 end
  end
  return reply
end

-- Returns whether a device of a mailbox has acknowledged less than the message with this index. A device that is not
-- known is not behind: it was forgotten, or will begin anew.
local function is_device_behind(box, name, index)
  local devices, at, is_behind = redis.pcall('HGET', box, 'd'), 1, false
  if not devices or devices.err then return false end
  while at <= #devices do
    local device = Device.read(devices, at)
    at = device.next_at
    if device.name == name then
      is_behind = device.index < index
      break
    end
  end
  return is_behind
end

-- Finds out which acknowledgements are missing. Changes nothing.
-- KEYS   the box of each mailbox, up to 256
-- ARGV   for each: the index of the last message that a device has acknowledged, and the device
-- Reply  the numbers of those that have acknowledged less
-- Bounded: the devices of each mailbox.
function entry.acknowledged(keys, arguments)
  local reply = {}
  for i = 1, #keys do
    local is_behind = is_device_behind(keys[i], arguments[2 * i], tonumber(arguments[2 * i - 1]))
    if is_behind then reply[#reply + 1] = i end
  end
  return reply
end

-- Forgets a device, like one that has not been seen for `device_ttl`: no more messages are kept for it. The next listen
-- of another device deletes messages that were kept only for it.
-- KEYS   [1] meta  [2] box  [3] mail
-- ARGV   [1] Target  [2] device  [3] ms when last seen: a device with another one is not forgotten; '' for any
-- Reply  {'ok', 1 if the mailbox had the device, else 0}
-- Refuses as described at LAYOUT
-- Bounded: one device.
function entry.forget(keys, arguments)
  local meta, box, mail, forgotten, expected = keys[1], keys[2], keys[3], arguments[2], arguments[3]
  local target = Target.read(arguments[1])
  local state = open_mailbox(meta, box, mail, target.partitions, target.new_epoch)
  if state.is_new then return {'ok', 0} end
  local devices, kept, at = redis.call('HGET', box, 'd') or '', '', 1
  while at <= #devices do
    local start = at
    local device = Device.read(devices, at)
    at = device.next_at
    if device.name ~= forgotten or expected ~= '' and device.seen ~= tonumber(expected) then
      kept = kept .. string.sub(devices, start, at - 1)
    end
  end
  if #kept == #devices then return {'ok', 0} end
  -- The first write removes something: Redis allows that at maxmemory.
  redis.call('HDEL', box, '')
  redis.call('HSET', box, 'd', kept)
  return {'ok', 1}
end
