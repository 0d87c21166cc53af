-- The watchers of a partition: up to three sessions that send a heartbeat whenever the next session expires.
--
-- The claims of a dead session are ended after the first heartbeat of any session that follows its expiry. The watchers
-- are the sessions with the longest TTLs, because the others send heartbeats often anyway. So this heartbeat depends
-- neither on the TTLs of living sessions nor on their number. The field `watchers` has SID:PROMISE:TTL of each watcher,
-- separated by spaces; PROMISE is the time of its next heartbeat.
--
-- The message `look` asks a watcher for a heartbeat if its promise is later than the end of the session that runs the
-- script. A watcher that is more than a second late is dropped, and sessions that outlast this one are asked instead.

-- The maximum number of watchers.
local MAX_WATCHERS = 3
-- How late a watcher may be, and the shortest time between two of its heartbeats, in microseconds.
local MAX_DELAY, MIN_WAIT = 1000000, 250000

-- Reads the watchers other than this session, which lasts `ttl` from `now`. Returns the list of them as tables of sid,
-- promise and ttl, the position of the one with the shortest TTL, the SIDs of those to ask for a heartbeat, and whether
-- one has not kept its promise.
local function read_watchers(watchers, sid, ttl, now)
  local others, shortest, called, is_missed = {}, nil, {}, false
  for other, promise, other_ttl in string.gmatch(watchers or '', '(%w+):(%d+):(%d+)') do
    promise, other_ttl = tonumber(promise), tonumber(other_ttl)
    if other ~= sid then
      -- A promise beyond the TTL is from a time when the clock was ahead.
      if promise + MAX_DELAY < now or promise > now + other_ttl then
        is_missed = true
      else
        if promise > now + ttl then
          called[#called + 1] = other
          promise = now
        end
        others[#others + 1] = {sid = other, promise = promise, ttl = other_ttl}
        if not shortest or other_ttl < others[shortest].ttl then shortest = #others end
      end
    end
  end
  return others, shortest, called, is_missed
end

-- Returns the microseconds until the next heartbeat of a watcher: until the next session other than itself expires, at
-- least MIN_WAIT and at most its usual wait.
local function find_wait(partition, sid, now, usual_wait)
  local next_ones = redis.call('ZRANGEBYSCORE', partition.sessions, string.format('(%d', now), '+inf', 'WITHSCORES',
    'LIMIT', '0', '2')
  local expires = next_ones[next_ones[1] == sid and 4 or 2]
  return expires and math.min(usual_wait, math.max(expires - now, MIN_WAIT)) or usual_wait
end

-- Writes the list of watchers, if it has changed.
local function write_watchers(state, watchers, list)
  local texts = {}
  for i = 1, #list do texts[i] = string.format('%s:%d:%d', list[i].sid, list[i].promise, list[i].ttl) end
  local text = table.concat(texts, ' ')
  if text ~= watchers then redis.call('HSET', state, 'watchers', text) end
end

-- Updates the watchers at the end of a script that begins or extends a session. `watchers` is the value of the field.
-- Returns the microseconds after which the session must send the next heartbeat, or 0 for the usual time.
local function keep_watch(partition, sid, ttl, now, watchers)
  local list, shortest, called, is_missed = read_watchers(watchers, sid, ttl, now)
  local is_watcher = #list < MAX_WATCHERS
  if not is_watcher and list[shortest].ttl < ttl then
    table.remove(list, shortest)
    is_watcher = true
  end
  local wait, usual_wait = 0, math.floor(ttl / 3)
  if is_watcher then
    wait = find_wait(partition, sid, now, usual_wait)
    list[#list + 1] = {sid = sid, promise = now + wait, ttl = ttl}
    if wait == usual_wait then wait = 0 end
  end
  write_watchers(partition.state, watchers, list)
  if is_missed then
    local lasting = redis.call('ZRANGEBYSCORE', partition.sessions, string.format('(%d', now + ttl), '+inf',
      'LIMIT', '0', '3')
    for i = 1, #lasting do called[#called + 1] = lasting[i] end
  end
  publish_look(partition, called)
  return math.floor(wait)
end
