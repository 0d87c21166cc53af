-- The part of a send that appends the messages.
if boxes then
  for number, b in pairs(boxes) do
    if b.is_over then return {'full', number} end
  end
end
if mode == PROBE then return {'ok', format('%d', now)} end
if results then reply = table.concat(results) end

if not is_step then
  -- The first write is one that Redis refuses at maxmemory: then nothing has been done. The expiry is set again when half
  -- of the time has passed.
  local is_renewed = expiry_set + answer_ttl / 2 < now
  call('HSET', sent, place, pack(ANSWER, request, is_renewed and now or expiry_set, fingerprint) .. reply)
  if is_renewed then call('PEXPIRE', sent, format('%d', answer_ttl)) end
  if is_partition_new then call('HSET', meta, 'partitions', partitions .. LAYOUT) end
  for number = 1, last_recipient do
    local elements, state = plan[2 * number - 1], plan[2 * number]
    if #elements == HEAD_SIZE then
      call('RPUSH', keys[2 * number + 2], elements, ARGV[2])
    else
      call('RPUSH', keys[2 * number + 2], unpack(elements))
    end
    if state then call('HSET', keys[2 * number + 1], 'm', state) end
  end
end
