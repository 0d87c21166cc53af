-- Ends a claim in whatever state: a waiter leaves the queue, a holder gives back.
-- ARGV[6] REQ of the claim  [7] SID of its session, or empty if it is this one. Another's is ended when that session is
--     dead, or when an operator says so: [8] 1
-- [8] w: only if it waits still
-- Reply: {'ended', its state: w, g, h, or d when there was none, 1 if there may be more to give}, or, if it was to be ended
--     only in the queue, {'granted', fence, n}; or a refusal.
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
local state, priority, n, at, from, mode = 'd', nil, nil, nil, nil, nil
if text and text ~= 'd' then
  state, mode, priority, n, at, from = unpacked('<c1c1c1dd', text)
end
if ARGV[8] == 'w' and (state == 'g' or state == 'h') then
  reply = {'granted', format('%.0f', at), format('%.0f', n)}
else
  if state ~= 'd' then
    local note
    local whose = string.sub(text, from)
    if mode == 't' or mode == 'i' or mode == 'e' then
      local zero = string.find(whose, '\0', 1, true)
      whose, note = string.sub(whose, 1, zero - 1), string.sub(whose, zero)
    end
    if whose ~= name then return redis.error_reply('RDC the claim ' .. id .. ' is not of ' .. name) end
    rems[#rems + 1] = 's' .. id
    if state == 'w' then
      rems[#rems + 1] = 'q' .. name .. '\0' .. priority .. pack('>I8', at) .. id
      if mode == 't' then rems[#rems + 1] = 'g' .. name .. note .. '\0' .. id end
      if kind then waiting, resource_changed = waiting - 1, true end
      if kind == 'b' and policy == 'b' then kind = 'z' end
    else
      if state == 'h' then rems[#rems + 1] = 'h' .. name .. '\0' .. id end
      -- What belongs to a resource that has been destroyed and made again is not this one's.
      local is_of_it = kind and at > created
      if mode == 't' then
        -- The last one of a group that goes out leaves its permit.
        local field = 'g:' .. name .. note
        local record = call('HGET', book, field)
        local count, of = 0, at
        if record then count, of = unpacked('<dd', record) end
        if of < at and count > 1 then
          sets[#sets + 1] = field
          sets[#sets + 1] = pack('<dd', count - 1, of)
        elseif of < at then
          dels[#dels + 1] = field
          if is_of_it then n = 1 end
        end
      elseif mode == 'i' then
        -- The item goes back to its place.
        if is_of_it and kind == 'i' then
          adds[#adds + 1] = '0'
          adds[#adds + 1] = 'v' .. name .. note
        else
          dels[#dels + 1] = 'v:' .. name .. note
        end
      elseif mode == 'e' then
        local field = 'n:' .. name .. note
        local left = tonumber(call('HGET', book, field) or 1)
        if left > 1 then
          sets[#sets + 1] = field
          sets[#sets + 1] = format('%.0f', left - 1)
        else
          dels[#dels + 1] = field
          dels[#dels + 1] = 'e:' .. name .. note
        end
      end
      if is_of_it then
        resource_changed = true
        if kind == 'p' and state == 'h' then
          limit = limit - 1
        elseif kind == 'l' and state == 'h' then
          if owner ~= sid and policy == 'f' then
            kind = 'z'
          else
            signalled = signalled + 1
            if signalled == limit then free = OPEN end
          end
        elseif kind ~= 'b' and kind ~= 'e' and kind ~= 'p' and kind ~= 'z' then
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
end
