-- The end of a script that begins or extends a session: keeps the list of watchers, and says when to look again.
--
-- The first heartbeat after the end of a dead session frees its claims. Up to three watchers send one whenever the
-- next session expires: the sessions with the longest TTLs, because the others send theirs often anyway. So neither the
-- TTLs of those who live delay it, nor does their number cause requests. The field `watchers` has SID:PROMISE:TTL of
-- each, PROMISE being the time of its next heartbeat.
--
-- A watcher that has promised to come after this session would end is called by the message `look`. One that is more
-- than a second late is dropped, and sessions that outlast this one are called in its place.
--
-- sid, ttl, now, watchers (the field), reply: set before. The last cell of the reply is added here: the microseconds
-- after which the next heartbeat must be sent, or 0 for the usual time.
local others, shortest, called, is_missed = {}, nil, {}, false
for other, promise, other_ttl in string.gmatch(watchers or '', '(%w+):(%d+):(%d+)') do
  promise, other_ttl = tonumber(promise), tonumber(other_ttl)
  if other ~= sid then
    -- A promise beyond the TTL is from a time when the clock was ahead.
    if promise + 1000000 < now or promise > now + other_ttl then
      is_missed = true
    else
      if promise > now + ttl then
        called[#called + 1] = other
        promise = now
      end
      others[#others + 1] = {other, promise, other_ttl}
      if not shortest or other_ttl < others[shortest][3] then shortest = #others end
    end
  end
end
local wait, usual_wait = 0, math.floor(ttl / 3)
local is_watcher = #others < 3
if not is_watcher and others[shortest][3] < ttl then
  table.remove(others, shortest)
  is_watcher = true
end
if is_watcher then
  -- Not this session itself.
  local next_ones = call('ZRANGEBYSCORE', sessions, format('(%d', now), '+inf', 'WITHSCORES', 'LIMIT', '0', '2')
  local expires = next_ones[next_ones[1] == sid and 4 or 2]
  wait = expires and math.min(usual_wait, math.max(expires - now, 250000)) or usual_wait
  others[#others + 1] = {sid, now + wait, ttl}
  if wait == usual_wait then wait = 0 end
end
local list = {}
for i = 1, #others do list[i] = format('%s:%d:%d', others[i][1], others[i][2], others[i][3]) end
list = table.concat(list, ' ')
if list ~= watchers then call('HSET', state, 'watchers', list) end
if is_missed then
  local lasting = call('ZRANGEBYSCORE', sessions, format('(%d', now + ttl), '+inf', 'LIMIT', '0', '3')
  for i = 1, #lasting do called[#called + 1] = lasting[i] end
end
-- The key of the state without its ending, `book`.
for i = 1, #called do call('PUBLISH', string.sub(state, 1, -5) .. 'wake:' .. called[i], 'look') end
reply[#reply + 1] = math.floor(wait)
return reply
