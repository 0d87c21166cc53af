-- Operations on mailboxes for operators: inspecting a mailbox, deleting it, and giving it limits of its own.

-- Returns the devices of a mailbox as a list of name, index, tag and ms when last seen of each.
local function list_devices(devices)
  local list, at = {}, 1
  while at <= #devices do
    local device = Device.read(devices, at)
    at = device.next_at
    list[#list + 1] = device.name
    list[#list + 1] = string.format('%d', math.max(device.index, 0))
    list[#list + 1] = device.tag
    list[#list + 1] = string.format('%d', device.seen)
  end
  return list
end

-- Returns the number of processes whose registration has not expired.
local function count_waiters(state, now)
  local count, at = 0, state.own_size + 1
  while at <= #state.rest do
    local waiter = Waiter.read(state.rest, at)
    at = waiter.next_at
    if waiter.ends > now then count = count + 1 end
  end
  return count
end

-- Returns the state of a mailbox. Changes nothing.
-- KEYS   [1] meta  [2] box  [3] mail
-- ARGV   [1] Target
-- Reply  {} if it does not exist, or {'ok', ms now, epoch, last, index of the last deleted message, bytes, its own
--        Limits or '', ms until it is deleted if nobody uses it or -1, number of processes whose registration has not
--        expired, {device, index, tag, ms when last seen, …}}
-- Refuses as described at LAYOUT
function entry.inspect(keys, arguments)
  local meta, box, mail = keys[1], keys[2], keys[3]
  local target = Target.read(arguments[1])
  local now = read_time()
  local state = open_mailbox(meta, box, mail, target.partitions, target.new_epoch)
  if state.is_new and state.last == 0 then return {} end
  local packed = redis.call('HGET', box, 'd') or ''
  if state.is_new then packed = '' end
  local devices = list_devices(packed)
  local waiters = count_waiters(state, now)
  return {'ok', string.format('%d', now), state.epoch, string.format('%d', state.last), string.format('%d', state.from),
    string.format('%d', state.sum - state.from_sum - state.hollow), string.sub(state.rest, 1, state.own_size),
    redis.call('PTTL', box), waiters, devices}
end

-- Deletes a mailbox with its messages and jobs, and notifies the processes that wait for it.
-- KEYS   [1] meta  [2] box  [3] mail  [4] work  [5] jobs  [6] dead
-- ARGV   [1] Target
-- Reply  {'ok', number of messages that were in it, 1 if it existed}
-- Refuses as described at LAYOUT
function entry.delete(keys, arguments)
  local meta, box, mail = keys[1], keys[2], keys[3]
  local target = Target.read(arguments[1])
  local state = open_mailbox(meta, box, mail, target.partitions, target.new_epoch)
  open_jobs(keys[4], keys[5], keys[6])
  local existed = redis.call('UNLINK', box, mail, keys[4], keys[5], keys[6])
  local name, channel, at = extract_name(meta, box), form_channel(meta), state.own_size + 1
  while at <= #state.rest do
    local waiter = Waiter.read(state.rest, at)
    at = waiter.next_at
    publish_to_read(channel .. waiter.process, name)
  end
  return {'ok', state.last - state.from, existed > 0 and 1 or 0}
end

-- Gives a mailbox limits of its own, or removes them. It has their time to live from now on, until the next use sets
-- that again.
-- KEYS   [1] meta  [2] box  [3] mail
-- ARGV   [1] Target  [2] Limits, or empty
-- Reply  {'ok'}
-- Refuses as described at LAYOUT
function entry.set_limits(keys, arguments)
  local meta, box, mail, own_limits = keys[1], keys[2], keys[3], arguments[2]
  local target = Target.read(arguments[1])
  local state = open_mailbox(meta, box, mail, target.partitions, target.new_epoch)
  local waiters = string.sub(state.rest, state.own_size + 1)
  local now = read_time()
  local life = 0
  if own_limits ~= '' then
    local limits = Limits.read(own_limits)
    life = limits.ttl
  end
  local reserve = math.floor(life / 8)
  state.due, state.own_size = life > 0 and now + reserve or 0, #own_limits
  redis.call('HSET', box, 'm', State.write(state) .. own_limits .. waiters)
  if state.is_partition_new then write_layout(meta, state.partitions) end
  for _, key in ipairs({box, mail}) do
    if life > 0 then
      redis.call('PEXPIREAT', key, string.format('%d', now + life + reserve))
    else
      redis.call('PERSIST', key)
    end
  end
  announce_epoch(meta, box, state)
  return {'ok'}
end
