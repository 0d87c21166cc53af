-- The part of a listen that writes what has changed.
local is_waiting = #reply == HEADER_SIZE and status == 'ok' and registration > 0
local is_due, is_freed = ttl > 0 and due <= now, ttl == 0 and due > 0
if is_due or is_freed or is_new or drop > 0 or begins or is_mine_new or has_moved or is_waiting
  or phase == REGISTERS then
  -- The first write removes something, which Redis allows at maxmemory: acknowledging frees memory.
  if drop > 0 then call('LTRIM', mail, format('%d', 2 * drop), '-1') else call('HDEL', box, '') end
  if history then call('HSET', box, 'h', history) end
  if is_partition_new then call('HSET', meta, 'partitions', partitions .. LAYOUT) end
  if is_waiting then
    local kept, waiter_at = sub(rest, 1, own_size) .. pack(WAITER, process, now + registration), own_size + 1
    while waiter_at <= #rest do
      local other, ends
      other, ends, waiter_at = unpacked(WAITER, rest, waiter_at)
      if other ~= process and ends > now then kept = kept .. pack(WAITER, other, ends) end
    end
    rest = kept
  end
  if (begins or is_mine_new) and not is_current then
    local kept, poll_at = pack(POLL, process, poll), 1
    while poll_at <= #polls do
      local other, its_poll
      other, its_poll, poll_at = unpacked(POLL, polls, poll_at)
      if other ~= process and #kept < MAX_POLLS * POLL_SIZE then kept = kept .. pack(POLL, other, its_poll) end
    end
    polls = kept
  end
  if is_due then due = now + math.floor(ttl / 8) elseif is_freed then due = 0 end
  if dead_keys then
    for i = 1, #dead_keys, 2 do
      local field = 'k:' .. dead_keys[i]
      if tonumber(call('HGET', box, field)) == dead_keys[i + 1] then
        keyed = keyed - call('HDEL', box, field)
      end
    end
  end
  -- It grows with every write, so that a forget that expects an older one does not apply.
  local seen = math.max(now, mine_seen + 1)
  call('HSET', box, 'd', others .. pack(DEVICE, #device, device, mine_index, mine_tag, seen, #polls, polls),
    'm', pack(STATE, partitions, epoch, last, last_tag, from, from_tag, last_sum, from_sum, hollow, keyed, due,
      own_size) .. rest)
  if is_due then
    local until_ms = format('%d', now + ttl + math.floor(ttl / 8))
    call('PEXPIREAT', box, until_ms)
    if last > from then call('PEXPIREAT', mail, until_ms) end
  elseif is_freed then
    call('PERSIST', box)
    if last > from then call('PERSIST', mail) end
  end
  if is_new or begins and rival then
    -- ':box:' is as long as ':meta'.
    local name, channel = sub(box, #meta + 1), sub(meta, 1, -5) .. 'wake:'
    if is_new then
      local growth = pack(GROWTH, epoch, last, last_tag, last, last_tag)
      try('PUBLISH', channel .. 'all', pack(WAKE_UP, #name, name, #growth, growth))
    end
    if begins and rival then try('PUBLISH', channel .. rival, pack(WAKE_UP_TO_READ, #name, name, 0)) end
  end
end
return reply
