-- Made from Sources/QueueListen/Lua by scripts/lua.
local keys = KEYS
local work, changed = keys[1], 0
local try = redis.pcall
do
  local jobs = keys[2]
  local dead = keys[3]
  local failed = try('ZCARD', dead)
  if type(failed) == 'table' then
    return {'foreign', dead}
  end
  if type(try('HEXISTS', work, 'x')) == 'table' then
    return {'foreign', work}
  end
  if type(try('ZCARD', jobs)) == 'table' then
    return {'foreign', jobs}
  end
end
redis.call('HDEL', work, '')
if ARGV[1] == '1' then
  changed = redis.call('HSET', work, 'x', '1')
  redis.call('PERSIST', work)
else
  changed = redis.call('HDEL', work, 'x')
end
return {'ok', changed}
