-- Made from Sources/GameServices/Lua by scripts/lua.
local arguments = ARGV
local ranks, stamps, kind = KEYS[1], KEYS[2], arguments[3]
local now
local call = redis.call
do
  local time = call('TIME')
  now = time[1] * 1000000 + time[2]
end
local format = string.format
do
  local first = tonumber(arguments[1])
  local last = tonumber(arguments[2])
  if last > 0 and (now < first or now >= last) then
    return {'window', format('%.0f', now)}
  end
end
local count = call('ZCARD', ranks)
local reply = {'ok', count}
if kind == 'of' then
  do
    local names = {unpack(arguments, 4)}
    local found = #names > 0 and call('HMGET', stamps, unpack(names))
    for number = 1, #names do
      local member = found[number] and found[number] .. names[number]
      local rank = member and call('ZRANK', ranks, member)
      if rank then
        reply[#reply + 1] = rank + 1
        reply[#reply + 1] = member
        reply[#reply + 1] = call('ZSCORE', ranks, member)
      end
    end
  end
  return reply
end
local skipped, limit = tonumber(arguments[4]), tonumber(arguments[5])
if kind == 'around' then
  local name = arguments[4]
  local stamp = call('HGET', stamps, name)
  local rank = stamp and call('ZRANK', ranks, stamp .. name)
  if not rank then
    return reply
  end
  skipped = math.max(0, math.min(rank - math.floor((limit - 1) / 2), count - limit))
end
do
  local found = call('ZRANGE', ranks, format('%.0f', skipped), format('%.0f', skipped + limit - 1), 'WITHSCORES')
  for number = 1, #found, 2 do
    reply[#reply + 1] = skipped + (number + 1) / 2
    reply[#reply + 1] = found[number]
    reply[#reply + 1] = found[number + 1]
  end
end
return reply
