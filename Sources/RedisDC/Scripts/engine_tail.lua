-- The end of every script of a session: gives to waiters, writes what has changed, wakes those who have something.

local from, to = '[q' .. name .. '\0', '(q' .. name .. '\1'
local budget = 128

-- A barrier lets all pass as soon as enough are there who live, all of them at once. What they bring to an exchanger is kept
-- under the tick of the meeting.
local meeting, brought
if gives and (kind == 'b' or kind == 'e' or kind == 'p') and waiting >= limit and limit > 0 then
  local leaving, living = {}, 0
  for i = 1, #rems do leaving[rems[i]] = true end
  for _, line in ipairs(call('ZRANGEBYLEX', index, from, to)) do
    local id = string.sub(line, #name + 12)
    local owner = string.sub(id, 1, string.find(id, ':', 1, true) - 1)
    local record = not leaving[line] and owner ~= sid and call('HGET', book, 's:' .. owner)
    if not leaving[line] and (owner == sid or record and unpacked('<d', record) > now) then living = living + 1 end
  end
  if living >= limit then
    free, signalled, resource_changed = limit, signalled + 1, true
    budget = waiting
    if kind == 'e' then
      tick = math.max(tick + 1, now)
      meeting, brought = pack('>I8', tick), {}
    end
  end
end

-- A group that has come in, and whose waiters come in with it. One that a script has left for later is found again.
local lit
if gives == 'now' and kind then
  local lines = call('ZRANGEBYLEX', index, '[u' .. name .. '\0', '(u' .. name .. '\1', 'LIMIT', '0', '2')
  if #lines > 0 then
    local group = string.sub(lines[1], #name + 3)
    local record = call('HGET', book, 'g:' .. name .. '\0' .. group)
    local _, of = 0, nil
    if record then _, of = unpacked('<dd', record) end
    if of == created and kind ~= 'x' then lit = group end
    rems[#rems + 1] = lines[1]
  end
  if #lines == 2 then
    adds[#adds + 1] = '0'
    adds[#adds + 1] = 't' .. name
    reply[#reply + 1] = 1
  end
end

-- First come, first served, while there is enough for the first one. Of a resource that is being destroyed, or broken, all are
-- told so. At most so many by one script: the rest is left for the next (t NAME).
local word = kind == 'x' and 'gone' or kind == 'z' and 'broken'
if gives and kind and waiting > 0 and (free > 0 or word or lit) then
  local others = {}
  news = news or {}
  if policy == 'b' and kind == 's' and gives == 'fair' then
    -- Where overtaking is allowed, the first is only told to try, and whoever comes before it may be faster. The name is
    -- noted, in case it never tries.
    local line = call('ZRANGEBYLEX', index, from, to, 'LIMIT', '0', '1')[1]
    if line then
      local id = string.sub(line, #name + 12)
      local colon = string.find(id, ':', 1, true)
      local owner, number = string.sub(id, 1, colon - 1), string.sub(id, colon + 1)
      news[owner] = (news[owner] and news[owner] .. ' ' or '') .. number .. ' try'
      adds[#adds + 1] = '0'
      adds[#adds + 1] = 't' .. name
    end
  else
    local at, is_over = 0, false
    -- How many of a group are in, and where its waiters are read.
    local inside, lit_at = {}, 0
    -- Lines that this script takes away are still in the index.
    local taken = {}
    for i = 1, #rems do taken[rems[i]] = true end
    while waiting > 0 and budget > 0 and (lit or not is_over and (free > 0 or word)) do
      local lines, skipped
      local group = lit
      if group then
        local of_group = 'g' .. name .. '\0' .. group
        lines = call('ZRANGEBYLEX', index, '[' .. of_group .. '\0', '(' .. of_group .. '\1', 'LIMIT', lit_at, '32')
        lit_at, skipped = lit_at + #lines, #of_group + 2
        if #lines == 0 then lit, lit_at = nil, 0 end
      else
        -- Most often it is one that gets something. Numbers would have to be printed first.
        lines = call('ZRANGEBYLEX', index, from, to, 'LIMIT', at == 0 and '0' or at, at == 0 and '1' or '32')
        at, skipped = at + #lines, #name + 12
        if #lines == 0 then
          -- Someone has tampered with the index.
          waiting, resource_changed = 0, true
        end
      end
      for i = 1, #lines do
        local line = lines[i]
        if budget == 0 or free <= 0 and not word and not group then break end
        if lit ~= group then
          -- The one before has brought its group in: the queue goes on here afterwards.
          at = at - #lines + i - 1
          break
        end
        if not taken[line] then
          local id = string.sub(line, skipped)
          local colon = string.find(id, ':', 1, true)
          local owner, number = string.sub(id, 1, colon - 1), string.sub(id, colon + 1)
          local pair = call('HMGET', book, 'c:' .. id, 's:' .. owner)
          local state, mode, priority, n, since, rest = 'd', nil, nil, nil, nil, nil
          if pair[1] and pair[1] ~= 'd' then state, mode, priority, n, since, rest = unpacked('<c1c1c1dd', pair[1]) end
          local note, second = '', nil
          if state == 'w' and mode == 't' then
            -- It stands in two lines. If its group is in, it needs no permit.
            note = string.sub(pair[1], rest + #name)
            second = group and 'q' .. name .. '\0' .. priority .. pack('>I8', since) .. id or 'g' .. name .. note .. '\0' .. id
            taken[second] = true
            if not inside[note] then
              local record = call('HGET', book, 'g:' .. name .. note)
              local count, of = 0, nil
              if record then count, of = unpacked('<dd', record) end
              inside[note] = of == created and count or 0
            end
            if inside[note] > 0 then n = 0 end
          end
          local other = others[owner]
          if not other and owner ~= sid then
            other = {0, 0, 0, 0}
            if pair[2] then other = {unpacked('<dddd', pair[2])} end
            others[owner] = other
          end
          local is_alive = owner == sid or other[1] > now
          if state ~= 'w' or not is_alive then
            -- Whose session has ended is passed over.
            rems[#rems + 1] = line
            rems[#rems + 1] = 's' .. id
            rems[#rems + 1] = second
            dels[#dels + 1] = 'c:' .. id
            waiting = waiting - 1
          elseif word then
            rems[#rems + 1] = line
            rems[#rems + 1] = 's' .. id
            rems[#rems + 1] = second
            if tonumber(number) <= (owner == sid and settled or other and other[2] or 0) then
              -- Nothing would ever take a note away of what is settled.
              dels[#dels + 1] = 'c:' .. id
            else
              -- Its request may come a second time.
              sets[#sets + 1] = 'c:' .. id
              sets[#sets + 1] = 'd'
              if owner == sid then
                last, session_changed = math.max(last, tonumber(number)), true
              else
                other[3], other.changed = math.max(other[3], tonumber(number)), true
              end
            end
            news[owner] = (news[owner] and news[owner] .. ' ' or '') .. number .. ' ' .. word
            waiting = waiting - 1
          elseif free < n then
            is_over = true
            break
          else
            tick = math.max(tick + 1, now)
            free, waiting = free - n, waiting - 1
            rems[#rems + 1] = line
            rems[#rems + 1] = second
            local value = ''
            if mode == 't' then
              -- The permit is the group's.
              n, inside[note] = 0, inside[note] + 1
              if inside[note] == 1 then lit = string.sub(note, 2) end
            elseif kind == 'b' or kind == 'e' or kind == 'p' then
              -- Which arrival it was, in which generation.
              n = (signalled - 1) * 1024 + limit - free - 1
              value = '/' .. format('%.0f', n)
              if meeting then
                brought[#brought + 1] = string.sub(pair[1], rest + #name + 1)
                note = '\0' .. meeting
              end
            end
            if mode ~= 'c' then
              adds[#adds + 1] = '0'
              adds[#adds + 1] = 'h' .. name .. '\0' .. id
            end
            sets[#sets + 1] = 'c:' .. id
            sets[#sets + 1] = pack('<c1c1c1dd', mode == 'c' and 'g' or 'h', mode, priority, n, tick) .. name .. note
            if owner == sid then
              grants, session_changed = grants + 1, true
            else
              other[4], other.changed = other[4] + 1, true
            end
            news[owner] = (news[owner] and news[owner] .. ' ' or '') .. number .. ' ' .. format('%.0f', tick) .. value
          end
          resource_changed = true
          budget = budget - 1
        end
      end
    end
    for note, count in pairs(inside) do
      if count > 0 then
        sets[#sets + 1] = 'g:' .. name .. note
        sets[#sets + 1] = pack('<dd', count, created)
      end
    end
    if lit and waiting > 0 then
      adds[#adds + 1] = '0'
      adds[#adds + 1] = 'u' .. name .. '\0' .. lit
    end
    for owner, other in pairs(others) do
      if other.changed then
        sets[#sets + 1] = 's:' .. owner
        sets[#sets + 1] = pack('<dddd', other[1], other[2], other[3], other[4])
      end
    end
    if budget == 0 and waiting > 0 then
      adds[#adds + 1] = '0'
      adds[#adds + 1] = 't' .. name
      reply[#reply + 1] = 1
    end
  end
end

if meeting then
  sets[#sets + 1] = 'e:' .. name .. '\0' .. meeting
  sets[#sets + 1] = cmsgpack.pack(brought)
  sets[#sets + 1] = 'n:' .. name .. '\0' .. meeting
  sets[#sets + 1] = #brought
end

-- A condition keeps nothing for those who come later.
if kind == 'c' and free > waiting then
  signalled, free, resource_changed = signalled - free + waiting, waiting, true
end
if resource_changed then
  if waiting == 0 and (kind == 'x' or kind == 'c' or (kind == 'm' or kind == 'r') and free == limit or kind == 'p' and limit == 0) then
    -- What nobody has or wants leaves nothing behind, where it can be made again as it was.
    dels[#dels + 1] = 't:' .. name
  else
    sets[#sets + 1] = 't:' .. name
    sets[#sets + 1] = pack('<c1c1ddddddd', kind, policy, permits, limit, free, waiting, created, signalled, consumed)
  end
end
if session_changed then
  sets[#sets + 1] = 's:' .. sid
  sets[#sets + 1] = pack('<dddd', ends, settled, last, grants)
end
-- What is taken away comes first, which Redis allows at maxmemory; then it allows the rest.
if #rems > 0 then call('ZREM', index, unpack(rems)) end
if #dels > 0 then call('HDEL', book, unpack(dels)) end
if #adds > 0 then call('ZADD', index, unpack(adds)) end
if #sets > 0 then call('HSET', book, 'clock', pack('<d', tick), unpack(sets)) end
if news then
  local channel = string.sub(book, 1, -5) .. 'wake:'
  for owner, text in pairs(news) do call('PUBLISH', channel .. owner, text) end
end
return reply
