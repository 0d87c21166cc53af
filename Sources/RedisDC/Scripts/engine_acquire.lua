-- Takes permits, or queues for them.
-- ARGV[9] permits wanted  [10] mode: c consume, l lease  [11] 1: do not queue  [12] priority, 1 unless it is given: who has
--     0 comes before all who have 1, and does not wait for them  [13] with mode t: the group. Who finds it in comes in with
--     it, and needs no permit
-- Reply: {'granted', fence}, {'queued'}, {'none'}, {'over'} (this request was cancelled before it came), or a refusal.
if answer == 'd' then
  reply = {'over'}
elseif answer then
  local state, _, _, _, at = unpacked('<c1c1c1dd', answer)
  reply = state == 'w' and {'queued'} or {'granted', format('%.0f', at)}
elseif refusal then
  reply = refusal
else
  local n, mode, priority = tonumber(ARGV[9]), ARGV[10], ARGV[12] or '1'
  local passes = free >= n and (waiting == 0 or policy == 'b')
  local note, inside = '', 0
  if mode == 't' then
    note = '\0' .. ARGV[13]
    local record = call('HGET', book, 'g:' .. name .. note)
    if record then
      local count, of = unpacked('<dd', record)
      -- Not one that is in what was destroyed.
      if of == created then inside = count end
    end
    passes = inside > 0 or free >= n and waiting == 0
  end
  if free >= n and not passes and priority == '0' then
    local from, to = '[q' .. name .. '\0' .. '0', '(q' .. name .. '\0' .. '1'
    passes = #call('ZRANGEBYLEX', index, from, to, 'LIMIT', '0', '1') == 0
  end
  if passes then
    tick = math.max(tick + 1, now)
    -- The first to be written, because it is what Redis refuses at maxmemory.
    if mode == 'c' then
      call('ZADD', index, '0', 's' .. me)
    else
      call('ZADD', index, '0', 's' .. me, '0', 'h' .. name .. '\0' .. me)
    end
    if mode == 't' then
      -- The permit is the group's.
      sets[#sets + 1] = 'g:' .. name .. note
      sets[#sets + 1] = pack('<dd', inside + 1, created)
      if inside == 0 then free = free - n end
      n = 0
    end
    free, resource_changed = free - n, true
    sets[#sets + 1] = 'c:' .. me
    sets[#sets + 1] = pack('<c1c1c1dd', mode == 'c' and 'g' or 'h', mode, priority, n, tick) .. name .. note
    reply = {'granted', format('%.0f', tick)}
  elseif ARGV[11] == '1' then
    reply = {'none'}
  else
    tick = math.max(tick + 1, now)
    call('ZADD', index, '0', 's' .. me, '0', 'q' .. name .. '\0' .. priority .. pack('>I8', tick) .. me)
    waiting, resource_changed = waiting + 1, true
    if mode == 't' then
      adds[#adds + 1] = '0'
      adds[#adds + 1] = 'g' .. name .. note .. '\0' .. me
    end
    sets[#sets + 1] = 'c:' .. me
    sets[#sets + 1] = pack('<c1c1c1dd', 'w', mode, priority, n, tick) .. name .. note
    reply = {'queued'}
  end
end
