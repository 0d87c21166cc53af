-- Ends a session, and its place among the watchers (session_watch.lua). Claims that it still has are ended like those of
-- an expired session (session_sweep.lua): the message `look` calls the other watchers to do so, or up to three other
-- sessions when there are none. The last watcher calls those too.
-- KEYS: state, index, sessions, values
-- ARGV
--   [1] SID
-- Reply: 1; {'more', 1} if there are more slots: run it again.
local sid = ARGV[1]
local stored = call('HMGET', state, SESSION_FIELD .. sid, 'watchers')
local session = stored[1]
if not session or #session ~= SESSION_SIZE then return 1 end
-- Changes nothing. After a write that Redis allows at maxmemory, it allows the script's other writes too.
call('HDEL', state, '')
local _, notices, slots = decode(SESSION, session)
-- The last 1,024 slots.
local first = math.max(0, slots - 1024)
local fields = {}
for slot = first, slots - 1 do fields[#fields + 1] = SLOT_FIELD .. sid .. ':' .. format('%d', slot) end
local is_idle = true
for i, record in ipairs(slots > 0 and call('HMGET', state, unpack(fields)) or {}) do
  local is_ended = not record or string.sub(record, 1, 1) == DONE
  if not is_ended and string.sub(record, 26, 26) == SOLE and string.sub(record, 1, 1) == HELD then
    -- The record of the mutex says whether it is held (release_mutex.lua).
    local _, number = decode(SLOT, record)
    local resource = call('HGET', state, string.sub(record, 28))
    is_ended = not resource or string.sub(resource, 3, 3) == PERMITS
      and string.sub(resource, TAIL) ~= string.sub(fields[i], 3) .. ':' .. format('%d', number)
  end
  if not is_ended then is_idle = false end
end
if is_idle then
  if slots > 0 then call('HDEL', state, unpack(fields)) end
  slots = first
end
local list, others, was_watcher = {}, {}, false
for other, promise in string.gmatch(stored[2] or '', '(%w+)(:%d+:%d+)') do
  if other == sid then
    was_watcher = true
  else
    list[#list + 1] = other .. promise
    others[#others + 1] = other
  end
end
local is_calling = not is_idle or was_watcher and #others == 0
if is_calling and #others == 0 then
  -- Before the writes: without this session, the list of sessions may be gone.
  local time = call('TIME')
  local now = time[1] * 1000000 + time[2]
  local lasting = call('ZRANGEBYSCORE', sessions, format('(%d', now), '+inf', 'LIMIT', '0', '4')
  for i = 1, #lasting do
    if lasting[i] ~= sid and #others < 3 then others[#others + 1] = lasting[i] end
  end
end
if slots == 0 then
  call('HDEL', state, SESSION_FIELD .. sid, ABOUT_FIELD .. sid)
  call('ZREM', sessions, sid)
else
  call('HSET', state, SESSION_FIELD .. sid, encode(SESSION, 0, notices, slots))
  call('ZADD', sessions, '0', sid)
end
if was_watcher then call('HSET', state, 'watchers', table.concat(list, ' ')) end
-- The key of the state without its ending, `book`.
for i = 1, is_calling and #others or 0 do call('PUBLISH', string.sub(state, 1, -5) .. 'wake:' .. others[i], 'look') end
return is_idle and slots > 0 and {'more', 1} or 1
