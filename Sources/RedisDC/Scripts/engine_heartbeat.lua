-- Extends the session, and lists maintenance work for any session: claims of an expired session, waiters left over.
-- KEYS as in engine_head, with [3] sessions
-- ARGV
--   [6] ttl: microseconds that the session lasts from now
-- Reply: {'ok', grants to the session so far, number of its claims, expired, rechecks}, or a refusal.
--   expired: {SID of an expired session, REQ, NAME, REQ, NAME, …}, the claims to end with engine_release, or {}
--   rechecks: {NAME, …}, the resources whose waiters to look at with engine_give
local sessions = KEYS[3]
-- Changes nothing. After a write that Redis allows at maxmemory, it allows the script's other writes too.
call('HDEL', state, '')
expires, session_changed = now + tonumber(ARGV[6]), true
call('ZADD', sessions, format('%.0f', expires), sid)

local expired = {}
local dead_sid = call('ZRANGEBYSCORE', sessions, '-inf', format('%.0f', now), 'LIMIT', 0, 1)[1]
if dead_sid then
  local from, to = '[' .. CLAIM_LINE .. dead_sid .. ':', '(' .. CLAIM_LINE .. dead_sid .. ';'
  for _, line in ipairs(call('ZRANGEBYLEX', index, from, to, 'LIMIT', 0, 128)) do
    local claim_id = string.sub(line, 2)
    local claim = call('HGET', state, CLAIM_FIELD .. claim_id)
    -- A corrupt line or record is removed. It must not make the heartbeats of all sessions fail.
    local number = string.match(string.sub(claim_id, #dead_sid + 2), '^%d+$')
    -- Up to the note.
    local claim_name = number and claim and string.match(claim, '^%Z+', CLAIM_NAME)
    if claim_name then
      if #expired == 0 then expired[1] = dead_sid end
      expired[#expired + 1] = number
      expired[#expired + 1] = claim_name
    else
      zrem[#zrem + 1] = line
      if claim then hdel[#hdel + 1] = CLAIM_FIELD .. claim_id end
    end
  end
  if #expired == 0 then
    -- The session has no claims left. Its kept answers are deleted, at most 1,000 in one script, then the session
    -- itself.
    local record = call('HGET', state, SESSION_FIELD .. dead_sid)
    local number, upto = 1, 0
    if record then
      local _, dead_settled, dead_last_answer = decode(SESSION, record)
      number, upto = dead_settled + 1, dead_last_answer
    end
    local stop = math.min(upto, number + 999)
    while number <= stop do
      hdel[#hdel + 1] = CLAIM_FIELD .. dead_sid .. ':' .. format('%.0f', number)
      number = number + 1
    end
    if stop == upto then
      hdel[#hdel + 1] = SESSION_FIELD .. dead_sid
      hdel[#hdel + 1] = ABOUT_FIELD .. dead_sid
      call('ZREM', sessions, dead_sid)
    else
      local dead_expires, _, dead_last_answer, dead_grants = decode(SESSION, record)
      hset[#hset + 1] = SESSION_FIELD .. dead_sid
      hset[#hset + 1] = encode(SESSION, dead_expires, stop, dead_last_answer, dead_grants)
    end
  end
end

local rechecks = call('ZRANGEBYLEX', index, '[' .. RECHECK_LINE, '(' .. ENTERING_LINE, 'LIMIT', 0, 16)
for i, line in ipairs(rechecks) do rechecks[i] = string.sub(line, 2) end
local claims = call('ZLEXCOUNT', index, '[' .. CLAIM_LINE .. sid .. ':', '(' .. CLAIM_LINE .. sid .. ';')
-- The tail has not yet removed the claims that this script ends.
for _, line in ipairs(zrem) do
  if string.sub(line, 1, #sid + 2) == CLAIM_LINE .. sid .. ':' then claims = claims - 1 end
end
reply = {'ok', format('%.0f', grants), claims, expired, rechecks}
