-- Destroys a resource: its waiters are told, its holders keep what they hold.
-- ARGV[6] kind
-- Reply: {'ok', 1 if it was there, 1 if there are waiters still to be told (engine_give)},
--     {'conflict', kind, permits, policy that it has}, or a refusal.
if answer then
  reply = {'ok', 1}
  gives = 'now'
elseif not kind then
  reply = {'ok', 0}
elseif kind ~= 'x' and kind ~= 'z' and kind ~= ARGV[6] then
  reply = {'conflict', kind, format('%.0f', limit), policy}
else
  call('HDEL', book, '')
  if kind == 'l' or kind == 'z' then call('ZREMRANGEBYLEX', index, '[d' .. name .. '\0', '(d' .. name .. '\1') end
  if kind == 'i' then
    -- The items that nobody has. Who has one ends it.
    repeat
      local lines = call('ZRANGEBYLEX', index, '[v' .. name .. '\0', '(v' .. name .. '\1', 'LIMIT', '0', '1000')
      local fields = {}
      for i = 1, #lines do fields[i] = 'v:' .. string.sub(lines[i], 2) end
      if #lines > 0 then
        call('ZREM', index, unpack(lines))
        call('HDEL', book, unpack(fields))
      end
    until #lines < 1000
  end
  kind, resource_changed = 'x', true
  sets[#sets + 1] = 'c:' .. me
  sets[#sets + 1] = 'd'
  last, session_changed = math.max(last, req), true
  gives = 'now'
  reply = {'ok', 1}
end
