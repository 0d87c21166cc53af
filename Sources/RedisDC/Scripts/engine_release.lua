-- Ends a claim in whatever state: a waiter leaves the queue, a holder gives back.
-- ARGV[6] REQ of the claim  [7] SID of its session, or empty if it is this one. Another's is ended when that session is
--     dead, or when an operator says so: [8] 1
-- Reply: {'ended', its state: w, g, h, or d when there was none, 1 if there may be more to give}, or a refusal.
local owner = ARGV[7] == '' and sid or ARGV[7]
local id = owner .. ':' .. ARGV[6]
local number = tonumber(ARGV[6])
local text = call('HGET', book, 'c:' .. id)
local theirs = owner ~= sid and call('HGET', book, 's:' .. owner)
local their_ends, their_settled, their_last, their_grants
if theirs then
  their_ends, their_settled, their_last, their_grants = unpacked('<dddd', theirs)
  if their_ends > now and ARGV[8] ~= '1' then return redis.error_reply('RDC the claim ' .. id .. ' is of a living session') end
  if their_ends <= now then theirs = nil end
end
local state = 'd'
if text and text ~= 'd' then
  local priority, n, at, from, _
  state, _, priority, n, at, from = unpacked('<c1c1c1dd', text)
  if string.sub(text, from) ~= name then return redis.error_reply('RDC the claim ' .. id .. ' is not of ' .. name) end
  rems[#rems + 1] = 's' .. id
  if state == 'w' then
    rems[#rems + 1] = 'q' .. name .. '\0' .. priority .. pack('>I8', at) .. id
    if kind then waiting, thing_changed = waiting - 1, true end
    if kind == 'b' and policy == 'b' then kind = 'z' end
  else
    if state == 'h' then rems[#rems + 1] = 'h' .. name .. '\0' .. id end
    -- What belongs to a thing that has been destroyed and made again is not this one's.
    if kind and at > created then
      thing_changed = true
      if kind == 'p' and state == 'h' then
        limit = limit - 1
      elseif kind == 'l' and state == 'h' then
        if owner ~= sid and policy == 'f' then
          kind = 'z'
        else
          signalled = signalled + 1
          if signalled == limit then free = OPEN end
        end
      elseif kind ~= 'b' and kind ~= 'p' and kind ~= 'z' then
        free = free + n
      end
    end
  end
  gives = 'fair'
end
-- As long as the request that makes the claim may come again, or for the first time, a note stays that it is over.
if owner == sid and number > settled then
  sets[#sets + 1] = 'c:' .. id
  sets[#sets + 1] = 'd'
  last, session_changed = math.max(last, number), true
elseif theirs and number > their_settled then
  sets[#sets + 1] = 'c:' .. id
  sets[#sets + 1] = 'd'
  sets[#sets + 1] = 's:' .. owner
  sets[#sets + 1] = pack('<dddd', their_ends, their_settled, math.max(their_last, number), their_grants)
else
  dels[#dels + 1] = 'c:' .. id
end
if ARGV[8] == '1' and state ~= 'd' then news = {[owner] = ARGV[6] .. ' lost'} end
if #rems == 0 then
  -- A change that takes nothing away and adds nothing: after it, Redis lets the rest pass at maxmemory too.
  call('HDEL', book, '')
end
reply = {'ended', state}
