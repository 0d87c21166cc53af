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
local call = redis.call
call('HDEL', work, '')
if ARGV[1] == '1' then
  changed = call('HSET', work, 'x', '1')
  call('PERSIST', work)
else
  changed = call('HDEL', work, 'x')
  if call('HLEN', work) <= 2 and call('HEXISTS', work, 'f') == 1 then
    call('PEXPIRE', work, string.format('%d', 86400000))
  end
end
return {'ok', changed}
