-- Made from Sources/RedisDC/Lua by scripts/lua.
local keys = KEYS
local permits_key, meta_key = keys[1], keys[2]
local permits, adds_step_only = tonumber(ARGV[1]), ARGV[2]
local call = redis.call
do
  local type_found = call('TYPE', permits_key).ok
  if type_found ~= 'none' and type_found ~= 'list' then
    local message = 'WRONGTYPE ' .. permits_key .. ' holds a ' .. type_found .. ', not the permits of a semaphore'
    return redis.error_reply(message)
  end
end
local stored = call('HMGET', meta_key, 'permits', 'missing')
local existing, missing = tonumber(stored[1] or nil), tonumber(stored[2] or 0)
if existing and existing ~= permits then
  return {0, existing, 0}
end
if not existing then
  if adds_step_only then
    return {0, permits, 0}
  end
  call('HSET', meta_key, 'permits', string.format('%d', permits))
  call('DEL', keys[3])
  missing = permits
end
if missing > 0 then
  local min = math.min
  local step = min(missing, 10000)
  missing = missing - step
  if missing > 0 then
    call('HSET', meta_key, 'missing', string.format('%d', missing))
  else
    call('HDEL', meta_key, 'missing')
  end
  local count = step
  while count > 0 do
    local batch = {}
    for i = 1, min(count, 4000) do
      batch[i] = '1'
    end
    call('LPUSH', permits_key, unpack(batch))
    count = count - #batch
  end
end
return {existing and 0 or 1, permits, missing}
