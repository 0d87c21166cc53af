-- Made from Sources/GameServices/Lua by scripts/lua.
local keys = KEYS
local meta, answer_key = keys[1], keys[2]
local arguments = ARGV
local score, answer_ttl = arguments[2], arguments[5]
local submit_value
local submit_name, submit_mode, submit_direction = arguments[1], arguments[3], tonumber(arguments[4])
submit_value = submit_direction * tonumber(score)
local request = score .. ' ' .. submit_name
local call = redis.call
do
  local earlier = call('GET', answer_key)
  if earlier then
    local line_end = string.find(earlier, '\n', 1, true) or 0
    if string.sub(earlier, 1, line_end - 1) ~= request then
      return {'conflict'}
    end
    local ttl = redis.pcall('PTTL', answer_key)
    return {'again', string.sub(earlier, line_end + 1), type(ttl) == 'number' and ttl or -1}
  end
end
local now
do
  local time = call('TIME')
  now = time[1] * 1000000 + time[2]
end
local windows = (#keys - 2) / 2
local format = string.format
for window = 1, windows do
  local at = 5 + 4 * (window - 1)
  local first = tonumber(arguments[at + 2])
  local last = tonumber(arguments[at + 3])
  if last > 0 and (now < first or now >= last) then
    return {'window', format('%.0f', now)}
  end
end
local rules = submit_mode .. ' ' .. arguments[4]
local stored = call('HMGET', meta, 'rules', 'stamp')
if stored[1] and stored[1] ~= rules then
  return {'rules', stored[1]}
end
local plan_values, plan_olds, plan_members = {}, {}, {}
for window = 1, windows do
  local id = arguments[5 + 4 * (window - 1) + 1]
  local ranks = keys[2 * window + 1]
  local stamps = keys[2 * window + 2]
  local value = submit_value
  local stamp = call('HGET', stamps, submit_name)
  local member = stamp and stamp .. submit_name
  local old = tonumber(member and call('ZSCORE', ranks, member) or nil)
  if old then
    if submit_mode == 'best' then
      if old < value then
        value = old
      end
    elseif submit_mode == 'sum' then
      if old > 0 and value > 9007199254740992 - old or old < 0 and value < -9007199254740992 - old then
        return {'range', id}
      end
      value = old + value
    end
    plan_olds[window], plan_members[window] = old, member
  end
  plan_values[window] = value
end
local number = math.max(now, tonumber(stored[2] or 0) + 1)
if not stored[1] then
  call('HSET', meta, 'rules', rules)
end
call('HSET', meta, 'stamp', format('%.0f', number))
local answer
do
  local stamp = format('%014x', number)
  local lines = {}
  for window = 1, #plan_values do
    local ranks, stamps = keys[2 * window + 1], keys[2 * window + 2]
    local at = 5 + 4 * (window - 1)
    local value, member, changed = plan_values[window], plan_members[window], 0
    if value ~= plan_olds[window] then
      do
        local expires = arguments[at + 4]
        local member_2 = stamp .. submit_name
        call('ZADD', ranks, format('%.0f', value), member_2)
        if member then
          call('ZREM', ranks, member)
        end
        call('HSET', stamps, submit_name, stamp)
        if not member and expires ~= '0' then
          call('PEXPIREAT', ranks, expires)
          call('PEXPIREAT', stamps, expires)
        end
        member = member_2
      end
      changed = 1
    end
    lines[window] = format('%.0f %.0f %.0f %d %s', call('ZRANK', ranks, member) + 1, submit_direction * value,
      call('ZCARD', ranks), changed, arguments[at + 1])
  end
  answer = table.concat(lines, '\n')
end
call('SET', answer_key, request .. '\n' .. answer, 'PX', answer_ttl)
return {'ok', answer}
