-- Destroys a resource: its waiters are refused, its holders keep their leases.
-- ARGV
--   [6] kind
-- Reply: {'ok', 1 if it existed, else 0, 1 if waiters are left over for engine_give},
--   {'conflict', kind, limit, policy} (of the existing resource), or a refusal.
if previous then
  reply = {'ok', 1}
  grants_wanted = CATCH_UP
elseif not kind then
  reply = {'ok', 0}
elseif kind ~= DESTROYED and kind ~= BROKEN and kind ~= ARGV[6] then
  reply = {'conflict', kind, format('%.0f', limit), policy}
else
  -- Changes nothing. After a write that Redis allows at maxmemory, it allows the script's other writes too.
  call('HDEL', state, '')
  if kind == LATCH or kind == BROKEN then
    call('ZREMRANGEBYLEX', index, '[' .. COUNTED_LINE .. name .. '\0', '(' .. COUNTED_LINE .. name .. '\1')
  end
  if kind == ITEMS then
    -- Deletes the items that no claim has taken. The end of its claim deletes a taken item.
    local from, to = '[' .. ITEM_LINE .. name .. '\0', '(' .. ITEM_LINE .. name .. '\1'
    repeat
      local lines = call('ZRANGEBYLEX', index, from, to, 'LIMIT', '0', '1000')
      local fields = {}
      for i = 1, #lines do fields[i] = ITEM_FIELD .. string.sub(lines[i], 2) end
      if #lines > 0 then
        call('ZREM', index, unpack(lines))
        call('HDEL', state, unpack(fields))
      end
    until #lines < 1000
  end
  kind, resource_changed = DESTROYED, true
  hset[#hset + 1] = CLAIM_FIELD .. request_id
  hset[#hset + 1] = ENDED
  last_answer, session_changed = math.max(last_answer, request), true
  grants_wanted = CATCH_UP
  reply = {'ok', 1}
end
