-- The end of a script: writes the resource and what else has changed, and publishes the wake-ups.
--
-- wakeups: the message for each SID, a text of pairs separated by spaces: the NUMBER of a claim and its fence, or the
-- NUMBER and a word. In the message, the session's notices come first (0 if the script does not write the session).
-- sessions_read: records of sessions by SID, as tables with expires, notices, slots, and is_changed if they are
-- written.
if kind == CONDITION and free > waiting then
  -- A condition keeps no permits for later waiters.
  signalled, free = signalled - free + waiting, waiting
end
if kind then
  -- An unused resource is deleted if it can be created again as it was.
  if waiting == 0 and (kind == CONDITION or kind == PHASER and limit == 0
    or (kind == MUTEX or string.sub(kind, 1, 1) == READ_WRITE_LOCK) and free == limit) then
    hdel[#hdel + 1] = resource_field
  else
    hset[#hset + 1] = resource_field
    hset[#hset + 1] = encode(RESOURCE, kind, family, waiting, free, consumed, permits, limit, created, signalled)
      .. tail
  end
end
if tick then
  hset[#hset + 1] = 'clock'
  hset[#hset + 1] = encode(NUMBER, tick)
end
for owner, session in pairs(sessions_read) do
  if session.is_changed then
    if session_record and session_field == SESSION_FIELD .. owner then
      -- The request's own session, which has a new slot.
      local _, _, slots = decode(SESSION, session_record)
      session.slots, session_record = slots, nil
    end
    hset[#hset + 1] = SESSION_FIELD .. owner
    hset[#hset + 1] = encode(SESSION, session.expires, session.notices, session.slots)
  end
end
if session_record then
  hset[#hset + 1] = session_field
  hset[#hset + 1] = session_record
end
-- Deletions first: Redis allows them at maxmemory, and after them all other writes of the script.
if #zrem > 0 then call('ZREM', index, unpack(zrem)) end
if #hdel > 0 then call('HDEL', state, unpack(hdel)) end
if #zadd > 0 or #hset > 0 then
  if #zrem == 0 and #hdel == 0 then
    local written = protected('HSET', state, unpack(hset))
    if type(written) == 'table' then
      call('HDEL', state, '')
      call('HSET', state, unpack(hset))
    end
  elseif #hset > 0 then
    call('HSET', state, unpack(hset))
  end
  if #zadd > 0 then call('ZADD', index, unpack(zadd)) end
end
if wakeups then
  -- The key of the state without its ending, `book`.
  local channel = string.sub(state, 1, -5) .. 'wake:'
  for owner, text in pairs(wakeups) do
    local session = sessions_read[owner]
    call('PUBLISH', channel .. owner, format('%d ', session and session.is_changed and session.notices or 0) .. text)
  end
end
return reply
