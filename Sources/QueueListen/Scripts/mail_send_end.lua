-- The part of a send that deletes the messages that made room, writes the states of the mailboxes that need more than a
-- new state, and publishes the wake-ups.
if boxes then
  -- A wake-up contains messages of up to MAX_WAKE_UP bytes, and all wake-ups of a send together up to MAX_WAKE_UPS.
  local MAX_WAKE_UP, MAX_WAKE_UPS = 1024, 65536
  local wake_ups_of, wake_up_bytes = nil, 0
  for number, b in pairs(boxes) do
    local is_due, is_freed = b.ttl > 0 and b.due <= now, b.ttl == 0 and b.due > 0
    if is_due then b.due = now + math.floor(b.ttl / 8) elseif is_freed then b.due = 0 end
    -- After the new messages: an empty list would disappear, and could not be used again while its slot is being moved.
    if b.drop > 0 then call('LTRIM', b.mail, format('%d', 2 * b.drop), '-1') end
    local has_list = b.last > b.from
    if b.last > 0 then
      call('HSET', b.box, 'm', pack(STATE, partitions, b.epoch, b.last, b.tag, b.from, b.from_tag, b.sum, b.from_sum,
        b.hollow, b.keyed, b.due, b.own_size) .. b.rest)
    end
    if is_due then
      local at = format('%d', now + b.ttl + math.floor(b.ttl / 8))
      call('PEXPIREAT', b.box, at)
      if has_list then call('PEXPIREAT', b.mail, at) end
    elseif is_freed then
      call('PERSIST', b.box)
      if has_list then call('PERSIST', b.mail) end
    elseif b.ttl > 0 and b.base == b.from and has_list then
      -- To Redis, a list that was empty is a new key. It expires with its box.
      call('PEXPIREAT', b.mail, format('%d', b.due + b.ttl))
    end
    if b.last > b.base and (b.is_new or #b.rest > b.own_size) then
      -- ':box:' is as long as ':meta'.
      local name, elements = sub(b.box, #meta + 1), plan[2 * number - 1]
      local growth = pack(GROWTH, b.epoch, b.base, b.base_tag, b.last, b.tag)
      local wake_up, full = pack(WAKE_UP, #name, name, #growth, growth), nil
      wake_ups_of = wake_ups_of or {}
      if b.is_new then
        wake_ups_of.all = wake_ups_of.all or {}
        wake_ups_of.all[#wake_ups_of.all + 1] = wake_up
      elseif b.sum - b.base_sum <= MAX_WAKE_UP then
        -- Small messages are in the wake-up: a process that waits for them need not read.
        if type(elements) == 'string' then elements = {elements, ARGV[2]} end
        if #elements == 2 or not b.keys then
          for _, element in ipairs(elements) do growth = growth .. pack('<Hc0', #element, element) end
          full = pack(WAKE_UP, #name, name, #growth, growth)
        end
      end
      local at = b.own_size + 1
      while at <= #b.rest do
        local process, ends
        process, ends, at = unpacked(WAITER, b.rest, at)
        if ends > now then
          local wake_ups = wake_ups_of[process] or {}
          wake_ups_of[process] = wake_ups
          wake_ups[#wake_ups + 1] = full and wake_up_bytes < MAX_WAKE_UPS and full or wake_up
          wake_up_bytes = wake_up_bytes + #wake_ups[#wake_ups]
        end
      end
    end
  end
  -- Wake-ups may be lost: a user whose ACL rules forbid the channel has sent its messages all the same.
  if wake_ups_of then
    local channel = sub(meta, 1, -5) .. 'wake:'
    for process, wake_ups in pairs(wake_ups_of) do try('PUBLISH', channel .. process, table.concat(wake_ups)) end
  end
end
if is_step then return {'again'} end
return reply
