-- Turns a lease of one resource into a permit of another: a free place of a buffer into an item, an item into a free place.
-- ARGV[9] REQ of the claim  [10] NAME of its resource  [11] the item that takes the place; without it, the item that the claim
--     stands for goes
-- Reply: {'ok', 1 if there may be more to give}, {'none'} when it is not held, or a refusal.
if answer then
  reply = {'ok'}
elseif refusal then
  reply = refusal
else
  local number, other, item = tonumber(ARGV[9]), ARGV[10], ARGV[11]
  local id = sid .. ':' .. ARGV[9]
  local found = call('HMGET', book, 'c:' .. id, 't:' .. other)
  local state, mode, priority, n, at, from = 'd', nil, nil, nil, nil, nil
  if found[1] and found[1] ~= 'd' then state, mode, priority, n, at, from = unpacked('<c1c1c1dd', found[1]) end
  local k, f, p, l, fr, w, c, s, co
  if found[2] then k, f, p, l, fr, w, c, s, co = unpacked('<c1c1ddddddd', found[2]) end
  if state ~= 'h' or not item and mode ~= 'i' or string.match(found[1], '^%Z+', from) ~= other then
    reply = {'none'}
  elseif not k or at <= c then
    reply = {'gone'}
  else
    if item then
      tick = math.max(tick + 1, now)
      local place = name .. '\0' .. pack('>I8', tick)
      -- The first to be written, because it is what Redis refuses at maxmemory.
      call('HSET', book, 'v:' .. place, item)
      adds[#adds + 1] = '0'
      adds[#adds + 1] = 'v' .. place
    else
      -- A change that takes nothing away and adds nothing: after it, Redis lets the rest pass at maxmemory too.
      call('HDEL', book, '')
      dels[#dels + 1] = 'v:' .. string.sub(found[1], from)
    end
    rems[#rems + 1] = 's' .. id
    rems[#rems + 1] = 'h' .. other .. '\0' .. id
    sets[#sets + 1] = 't:' .. other
    sets[#sets + 1] = pack('<c1c1ddddddd', k, f, p, l, fr, w, c, s, co + n)
    if number > settled then
      sets[#sets + 1] = 'c:' .. id
      sets[#sets + 1] = 'd'
    else
      dels[#dels + 1] = 'c:' .. id
    end
    free, signalled, resource_changed = free + n, signalled + n, true
    sets[#sets + 1] = 'c:' .. me
    sets[#sets + 1] = 'd'
    last, session_changed = math.max(last, req, number), true
    gives = 'fair'
    reply = {'ok'}
  end
end
