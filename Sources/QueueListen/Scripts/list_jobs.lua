-- Made from Sources/QueueListen/Lua by scripts/lua.
local keys = KEYS
local work, jobs, dead, kind, limit = keys[1], keys[2], keys[3], ARGV[1], tonumber(ARGV[2])
local now
local call = redis.call
do
  local time = call('TIME')
  now = time[1] * 1000 + math.floor(time[2] / 1000)
end
local all_failed
local try = redis.pcall
do
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
  all_failed = failed
end
local running, tags
local unpacked = struct.unpack
do
  local packed, at
  packed, at, running, tags = call('HGET', work, 'p') or '', 1, 0, {}
  while at <= #packed do
    local waiter_process, waiter_ends, waiter_next_at = unpacked('<c16d', packed, at)
    at = waiter_next_at
    local text = call('HGET', work, 'w:' .. waiter_process)
    if text then
      local worker_held
      local worker_number, worker_results, worker_taken, worker_held_at = unpacked('<dHc0Hc0', text)
      local sub = string.sub
      worker_held = sub(text, worker_held_at)
      for tag_at = 1, math.min(#worker_held, 8 * (limit - running)), 8 do
        tags[#tags + 1], tags[#tags + 2] = sub(worker_held, tag_at, tag_at + 8 - 1), ''
      end
      running = running + #worker_held / 8
    end
  end
end
local reply = {'ok', string.format('%d', now), call('ZCARD', jobs), all_failed, running, call('HEXISTS', work, 'x')}
local last = string.format('%d', limit - 1)
if limit == 0 then
  tags = {}
elseif kind == '0' then
  tags = call('ZRANGE', jobs, '0', last, 'WITHSCORES')
elseif kind == '2' then
  tags = call('ZRANGE', dead, '0', last, 'REV', 'WITHSCORES')
end
do
  local size = 0
  for i = 1, #tags, 2 do
    if size >= 1048576 then
      break
    end
    local fields = call('HMGET', work, 'j:' .. tags[i], 'm:' .. tags[i])
    if fields[1] and fields[2] then
      reply[#reply + 1] = {tags[i], fields[1], fields[2], tags[i + 1]}
      size = size + #fields[1] + #fields[2]
    end
  end
end
return reply
