-- Reads a page: appends to `reply` the elements of messages from the position `at` on, up to `stop`. `reply` has
-- HEADER_SIZE elements before. It reads in pieces whose size is estimated from the average: one message may be large.
if at < stop and max_messages > 0 then
  -- One script returns no more than this, because it occupies the server meanwhile.
  local MAX_PAGE, MAX_PAGE_BYTES = 1000, 1048576
  max_messages, max_bytes = math.min(max_messages, MAX_PAGE), math.min(max_bytes, MAX_PAGE_BYTES)
  local average, size = math.max(1, (last_sum - from_sum - hollow) / (last - from)), 0
  while at < stop and max_messages > 0 and size < max_bytes do
    local n = math.max(1, math.min(max_messages, math.floor((max_bytes - size) / average), stop - at))
    local elements = call('LRANGE', mail, format('%d', 2 * at), format('%d', 2 * (at + n) - 1))
    if #elements == 0 then break end
    for i = 1, #elements, 2 do
      size = size + #elements[i] + #elements[i + 1]
      if size > max_bytes and #reply > HEADER_SIZE then break end
      reply[#reply + 1], reply[#reply + 2] = elements[i], elements[i + 1]
      at, max_messages = at + 1, max_messages - 1
    end
  end
end
