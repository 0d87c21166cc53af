-- A heartbeat, and a bounded part of what is due: the ends of sessions that have expired, and of objects whose grace
-- period is over. Any process may run it at any time. Follows presence_edit, before presence_end.
-- ARGV[4] the session, or empty
-- ARGV[5] number of the last batch of the session that was answered
-- ARGV[6] ms until the session expires without a heartbeat
-- ARGV[7] 'leave': the session ends, and the grace periods of its clients begin
-- ARGV[8] maximum number of clients and objects to end
local sid, number, budget = ARGV[4], tonumber(ARGV[5]), tonumber(ARGV[8])
local status = 'ok'
if not bucket then
  return {sid == '' and 'none' or 'lost'}
end
if sid ~= '' then
  local session = call('HGET', state, 's' .. sid)
  local expires = session and tonumber(call('ZSCORE', due, 's' .. sid)) or 0
  local last, left = 0, IN_USE
  if session then last, left = unpacked(SESSION, session) end
  if not session or left ~= IN_USE or expires <= now then
    status = 'lost'
  elseif last < number then
    status = 'rolled back'
  elseif ARGV[7] == 'leave' then
    call('HSET', state, 's' .. sid, pack(SESSION, last, now) .. string.sub(session, 17))
    call('ZADD', due, 0, 's' .. sid)
  else
    call('ZADD', due, now + ARGV[6], 's' .. sid)
  end
end
if now - renewed > RENEWAL or renewed > now then
  for i = 1, 4 do call('PEXPIRE', KEYS[i], RETENTION) end
  renewed, is_changed = now, true
end
local ended = 0
while budget > 0 do
  budget = budget - 1
  local member = call('ZRANGEBYSCORE', due, '-inf', now, 'LIMIT', 0, 1)[1]
  if not member then break end
  if string.sub(member, 1, 1) == 's' then
    local session = call('HGET', state, member)
    local gone = 0
    if session then
      local _, left = unpacked(SESSION, session)
      if left ~= IN_USE then gone = left end
    end
    -- Whatever the clock does now, this session has expired.
    call('ZADD', due, 0, member)
    local limit = budget + 1
    local clients = members(member .. '\0', limit)
    for _, entry in ipairs(clients) do
      local owner = string.sub(entry, 19)
      local _, token = unpacked(CLIENT, call('HGET', state, owner))
      disconnect(owner, string.sub(member, 2), token, gone)
    end
    budget = budget - #clients
    if #clients < limit then
      call('ZREM', due, member)
      call('HDEL', state, member)
    end
  else
    local record = call('HGET', state, member)
    local is_user = string.sub(member, 1, 1) == 'u'
    local gone = record and (is_user and unpacked('<d', record) or select(3, unpacked(CLIENT, record))) or 0
    local objects = members('o' .. member .. '\0', budget + 2)
    local done = 0
    for _, entry in ipairs(objects) do
      local grace, start = unpacked('>I4', entry, #member + 3)
      if gone + grace > now or budget < 0 then break end
      end_object(string.sub(entry, start), member, grace, gone == 0 and 'd' or 'g')
      budget, ended, done = budget - 1, ended + 1, done + 1
    end
    await_end(member, gone, objects[done + 1])
  end
end
-- The entry that is due first, without the guard.
local next_due = call('ZRANGEBYSCORE', due, '-inf', '(+inf', 'WITHSCORES', 'LIMIT', 0, 1)[2]
