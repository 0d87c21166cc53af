-- Gives a part of what is held back, and keeps the fence: a writer becomes a reader.
-- ARGV[6] REQ of the claim  [7] permits to keep
-- Reply: {'ok', permits that it had, 0 when it is not held, 1 if there may be more to give}.
local field, keep = 'c:' .. sid .. ':' .. ARGV[6], tonumber(ARGV[7])
local text = call('HGET', book, field)
local had = 0
if text and text ~= 'd' then
  local state, mode, priority, n, at, from = unpacked('<c1c1c1dd', text)
  if string.sub(text, from) ~= name then return redis.error_reply('RDC the claim ' .. ARGV[6] .. ' is not of ' .. name) end
  if state == 'h' then
    had = n
    if n > keep then
      call('HDEL', book, '')
      if kind and at > created then free, resource_changed = free + n - keep, true end
      sets[#sets + 1] = field
      sets[#sets + 1] = pack('<c1c1c1dd', state, mode, priority, keep, at) .. name
      gives = 'fair'
    end
  end
end
reply = {'ok', format('%.0f', had)}
