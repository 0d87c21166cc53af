-- How scripts write. A script first reads and checks everything, and collects its changes in lists. At its end it
-- writes the lists in few commands and publishes the wake-ups. At maxmemory Redis refuses the first command or none, so
-- that never a part of the changes is written.

-- The changes that a script has collected, and writes at its end.
local Writes = record {
  also = {
    'hset', -- fields and records of the state, in turns
    'hdel', -- fields of the state
    'vdel', -- fields of the values
    'zadd', -- scores, which are '0', and lines of the index, in turns
    'zrem', -- lines of the index
    'sessions', -- records of sessions by SID, as tables with expires, notices, slots, and is_changed if they are
                -- written
    'wakeups',  -- the message for each SID, a text of pairs separated by spaces: the NUMBER of a claim and its
                -- fence, or the NUMBER and a word. In the message that is published, the session's notices come first
                -- (0 if the script does not write the session). nil if there are none.
    'asker',    -- the slot's field of the request whose grant, if this script makes it, is its reply and no message
    'answer',   -- this reply; nil if there is none
  },
}

-- Makes Redis allow the script's writes at maxmemory: it allows a deletion, and then all later writes of the script.
-- The deleted field does not exist.
local function allow_writes(state)
  redis.call('HDEL', state, '')
end

-- Collects a field and its record.
local function set_field(writes, field, record)
  writes.hset[#writes.hset + 1] = field
  writes.hset[#writes.hset + 1] = record
end

-- Collects the deletion of a field of the state.
local function delete_field(writes, field)
  writes.hdel[#writes.hdel + 1] = field
end

-- Collects the deletion of a field of the values.
local function delete_value(writes, field)
  writes.vdel[#writes.vdel + 1] = field
end

-- Collects a line for the index.
local function add_line(writes, line)
  writes.zadd[#writes.zadd + 1] = '0'
  writes.zadd[#writes.zadd + 1] = line
end

-- Collects the removal of a line from the index.
local function remove_line(writes, line)
  writes.zrem[#writes.zrem + 1] = line
end

-- Leaves the rest of the work on a resource to a later script, which runs after a heartbeat or the reply `more`.
local function add_recheck(writes, name)
  writes.zadd[#writes.zadd + 1] = '0'
  writes.zadd[#writes.zadd + 1] = RECHECK_LINE .. name
end

-- Adds a pair to the message for a session: the number of its claim, and a fence or a word.
local function add_wakeup(writes, sid, number, word)
  writes.wakeups[sid] = (writes.wakeups[sid] and writes.wakeups[sid] .. ' ' or '') .. number .. ' ' .. word
end

-- Returns the session of a claim, which the script reads once. A session without a record, or with a corrupt one, has
-- expired.
local function read_session(partition, writes, sid)
  local session = writes.sessions[sid]
  if not session then
    session = {expires = 0}
    local stored = redis.call('HGET', partition.state, SESSION_FIELD .. sid)
    if stored and #stored == Session.size then
      session.expires, session.notices, session.slots = struct.unpack(Session.format, stored)
    end
    writes.sessions[sid] = session
  end
  return session
end

-- Makes the expiry of a session final if its time has passed: then it has expired for every script, see Session.
local function note_expiry(session, now)
  if session.expires > 0 and session.expires <= now then session.expires, session.is_changed = 0, true end
end

-- Counts a message that a session receives about the change of one of its claims.
local function add_notice(session)
  session.notices, session.is_changed = session.notices + 1, true
end

-- Writes the record of a request's session, if the request has used a slot for the first time.
local function write_session_of_slot(partition, slot)
  if slot.session_record then redis.call('HSET', partition.state, slot.session_field, slot.session_record) end
end

-- Collects the record of a resource, or its deletion.
local function collect_resource(writes, resource)
  if resource.kind == CONDITION and resource.free > resource.waiting then
    -- A condition keeps no permits for later waiters.
    resource.signalled, resource.free = resource.signalled - resource.free + resource.waiting, resource.waiting
  end
  if resource.kind then
    -- An unused resource is deleted if it can be created again as it was.
    if resource.waiting == 0 and (resource.kind == CONDITION or resource.kind == PHASER and resource.limit == 0
      or (resource.kind == MUTEX or string.sub(resource.kind, 1, 1) == READ_WRITE_LOCK)
      and resource.free == resource.limit) then
      delete_field(writes, resource.field)
    else
      set_field(writes, resource.field, record_with_tail(resource))
    end
  end
end

-- Collects the clock and the sessions that have changed.
local function collect_clock_and_sessions(writes, clock)
  if clock.tick then set_field(writes, 'clock', struct.pack(NUMBER_FORMAT, clock.tick)) end
  for sid, session in pairs(writes.sessions) do
    if session.is_changed then
      set_field(writes, SESSION_FIELD .. sid,
        struct.pack(Session.format, session.expires, session.notices, session.slots))
    end
  end
end

-- Adds a new slot to the session of the request, if the script writes this session anyway.
local function merge_session_of_slot(writes, slot)
  if slot.session_record then
    local session = writes.sessions[string.sub(slot.session_field, 3)]
    if session and session.is_changed then
      local own = Session.read(slot.session_record)
      session.slots, slot.session_record = own.slots, nil
    end
  end
end

-- Writes the lists to the state and the index. Deletions first: Redis allows them at maxmemory, and after them all
-- other writes of the script.
local function write_lists(partition, writes)
  if #writes.zrem > 0 then redis.call('ZREM', partition.index, unpack(writes.zrem)) end
  if #writes.hdel > 0 then redis.call('HDEL', partition.state, unpack(writes.hdel)) end
  if #writes.zadd > 0 or #writes.hset > 0 then
    if #writes.zrem == 0 and #writes.hdel == 0 then
      local written = redis.pcall('HSET', partition.state, unpack(writes.hset))
      if type(written) == 'table' then
        allow_writes(partition.state)
        redis.call('HSET', partition.state, unpack(writes.hset))
      end
    elseif #writes.hset > 0 then
      redis.call('HSET', partition.state, unpack(writes.hset))
    end
    if #writes.zadd > 0 then redis.call('ZADD', partition.index, unpack(writes.zadd)) end
  end
end

-- Publishes the message of each session.
local function publish_wakeups(partition, writes)
  if writes.wakeups then
    local channel = wake_channel(partition.state)
    for owner, text in pairs(writes.wakeups) do
      local session = writes.sessions[owner]
      redis.call('PUBLISH', channel .. owner,
        string.format('%d ', session and session.is_changed and session.notices or 0) .. text)
    end
  end
end

-- Deletes the values that have been collected. It comes first: after a deletion, Redis allows the other writes at
-- maxmemory.
local function delete_values(partition, writes)
  if #writes.vdel > 0 then redis.call('HDEL', partition.values, unpack(writes.vdel)) end
end

-- Writes what has been collected, and publishes the wake-ups.
local function write_all(partition, writes, clock)
  collect_clock_and_sessions(writes, clock)
  write_lists(partition, writes)
  publish_wakeups(partition, writes)
end

-- Writes what a request that takes a slot has collected, with its session if the slot is new, and publishes the
-- wake-ups.
local function write_all_of_request(partition, slot, writes, clock)
  merge_session_of_slot(writes, slot)
  collect_clock_and_sessions(writes, clock)
  if slot.session_record then set_field(writes, slot.session_field, slot.session_record) end
  write_lists(partition, writes)
  publish_wakeups(partition, writes)
end
