-- Lets the session live on, and finds what is left to do for all.
-- ARGV[6] microseconds that the session lasts from now
-- Reply: {'ok', grants to the session so far, its claims, {SID of a session that has ended, REQ, NAME, REQ, NAME, …} or {}:
--     claims to be ended for it (engine_release), {NAME, …}: waiters to be looked at again (engine_give)}, or a refusal.
local sessions = KEYS[3]
-- A change that takes nothing away and adds nothing: after it, Redis lets the rest pass at maxmemory too.
call('HDEL', book, '')
ends, session_changed = now + tonumber(ARGV[6]), true
call('ZADD', sessions, format('%.0f', ends), sid)

local dead = {}
local first = call('ZRANGEBYSCORE', sessions, '-inf', format('%.0f', now), 'LIMIT', 0, 1)[1]
if first then
  for _, line in ipairs(call('ZRANGEBYLEX', index, '[s' .. first .. ':', '(s' .. first .. ';', 'LIMIT', 0, 128)) do
    local id = string.sub(line, 2)
    local text = call('HGET', book, 'c:' .. id)
    -- A line or record that somebody has spoilt holds up nobody's heartbeat.
    local number = string.match(string.sub(id, #first + 2), '^%d+$')
    -- The name is behind 3 letters and 2 doubles. Without the note.
    local whose = number and text and string.match(text, '^%Z+', 20)
    if whose then
      if #dead == 0 then dead[1] = first end
      dead[#dead + 1] = number
      dead[#dead + 1] = whose
    else
      rems[#rems + 1] = line
      if text then dels[#dels + 1] = 'c:' .. id end
    end
  end
  if #dead == 0 then
    -- Nothing is held for it any more: what it was answered goes, then it goes itself.
    local record = call('HGET', book, 's:' .. first)
    local number, upto = 1, 0
    if record then
      local _, their_settled, their_last = unpacked('<dddd', record)
      number, upto = their_settled + 1, their_last
    end
    local stop = math.min(upto, number + 999)
    while number <= stop do
      dels[#dels + 1] = 'c:' .. first .. ':' .. format('%.0f', number)
      number = number + 1
    end
    if stop == upto then
      dels[#dels + 1] = 's:' .. first
      dels[#dels + 1] = 'i:' .. first
      call('ZREM', sessions, first)
    else
      local e, _, l, g = unpacked('<dddd', record)
      sets[#sets + 1] = 's:' .. first
      sets[#sets + 1] = pack('<dddd', e, stop, l, g)
    end
  end
end

local names = call('ZRANGEBYLEX', index, '[t', '(u', 'LIMIT', 0, 16)
for i, line in ipairs(names) do names[i] = string.sub(line, 2) end
local claims = call('ZLEXCOUNT', index, '[s' .. sid .. ':', '(s' .. sid .. ';')
for _, line in ipairs(rems) do
  if string.sub(line, 1, #sid + 2) == 's' .. sid .. ':' then claims = claims - 1 end
end
reply = {'ok', format('%.0f', grants), claims, dead, names}
