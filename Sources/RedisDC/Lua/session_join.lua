-- Begins sessions, and creates the keys of a partition at its first use.

-- Refuses a key of another type than the engine's.
local function check_type_of_key(key, expected_type)
  local type_found = redis.call('TYPE', key).ok
  if type_found ~= expected_type and type_found ~= 'none' then
    refuse(redis.error_reply('WRONGTYPE ' .. key .. ' holds a ' .. type_found .. ', not a table of the engine'))
  end
end

-- Creates the state of a partition, and deletes what is left in the other keys.
local function create_state(partition, epoch, partitions, now)
  -- Without the state, the other keys are useless.
  redis.call('UNLINK', partition.sessions, partition.index, partition.values)
  local clock = struct.pack(NUMBER_FORMAT, now)
  redis.call('HSET', partition.state, 'epoch', epoch, 'clock', clock, 'partitions', partitions)
end

-- Raises the clock to a fence that the process has seen, so that later fences are higher. A fence that is more than
-- MAX_FENCE_LEAD ahead is ignored.
local function raise_clock_on_join(state, now, fence)
  local clock = redis.call('HGET', state, 'clock')
  local is_believed = fence < now + MAX_FENCE_LEAD
  if not clock or #clock ~= #NEVER or is_believed and struct.unpack(NUMBER_FORMAT, clock) < fence then
    local raised = struct.pack(NUMBER_FORMAT, math.max(now, is_believed and fence or 0))
    redis.call('HSET', state, 'clock', raised)
  end
end

-- Writes a session and lists it, and writes the elements that keep the index and the values from disappearing.
local function write_new_session(partition, sid, session, about)
  redis.call('ZADD', partition.index, '0', GUARD_LINE)
  redis.call('HSET', partition.values, '', '')
  redis.call('HSET', partition.state, SESSION_FIELD .. sid, Session.write(session), ABOUT_FIELD .. sid, about)
  redis.call('ZADD', partition.sessions, string.format('%d', session.expires), sid)
end

-- Begins a session, and creates the state and the index if they do not exist.
-- KEYS: state, index, sessions, values
-- ARGV
--   [1] SID
--   [2] epoch: of a new state
--   [3] ttl: microseconds that the session lasts without a heartbeat
--   [4] partitions: number of partitions of the namespace, then ' layout 3'
--   [5] about: how the session describes itself
--   [6] fence: the highest that the process has seen; later ones are higher. More than a day ahead, it is ignored.
--   [7] SID of the process's session before, if it was found missing, or empty
-- Reply: {'ok', epoch, next: see keep_watch, 1 if the session before may have expired, else 0}, {'lost'} (the session
--   existed and has expired), or {'conflict',
--   partitions, as in [4]}: of the namespace, without a layout for one of the first layout.
-- Refuses with the error WRONGTYPE if a key holds something else.
function entry.join(keys, arguments)
  local partition = Partition.new({state = keys[1], index = keys[2], sessions = keys[3], values = keys[4]})
  local sid, epoch_if_new, ttl, wanted_partitions = arguments[1], arguments[2], tonumber(arguments[3]), arguments[4]
  for i, expected_type in ipairs({'hash', 'zset', 'zset', 'hash'}) do check_type_of_key(keys[i], expected_type) end
  local now = read_time()
  local stored = redis.call('HMGET', partition.state, 'epoch', 'partitions', SESSION_FIELD .. sid, 'watchers')
  local epoch, partitions, stored_session, watchers = stored[1], stored[2], stored[3], stored[4]
  if epoch and partitions ~= wanted_partitions then return {'conflict', partitions or ''} end
  local session = Session.new({expires = now + ttl, notices = 0, slots = 0})
  if is_session(stored_session) then
    -- A repeated join only extends the session, which may have claims already.
    Session.read_into(session, stored_session)
    if session.expires <= now then return {'lost'} end
    session.expires = now + ttl
  end
  if not epoch then create_state(partition, epoch_if_new, wanted_partitions, now) end
  write_new_session(partition, sid, session, arguments[5])
  raise_clock_on_join(partition.state, now, tonumber(arguments[6] or 0))
  local next_heartbeat = keep_watch(partition, sid, ttl, now, watchers)
  local has_expired = may_have_expired(partition.state, arguments[7] or '', now)
  return {'ok', epoch or epoch_if_new, next_heartbeat, has_expired and 1 or 0}
end
