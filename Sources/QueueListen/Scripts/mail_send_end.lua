-- The part of a send that deletes the messages that made room, writes the states of the mailboxes that need more than a
-- new state, and publishes the hints.
if boxes then
  -- A hint contains messages of up to MAX_HINT bytes, and all hints of a send together up to MAX_HINTS.
  local MAX_HINT, MAX_HINTS = 1024, 65536
  local hints_of, hint_bytes = nil, 0
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
      local hint, full = pack(HINT, #name, name, #growth, growth), nil
      hints_of = hints_of or {}
      if b.is_new then
        hints_of.all = hints_of.all or {}
        hints_of.all[#hints_of.all + 1] = hint
      elseif b.sum - b.base_sum <= MAX_HINT then
        -- Small messages are in the hint: a process that waits for them need not read.
        if type(elements) == 'string' then elements = {elements, ARGV[2]} end
        if #elements == 2 or not b.keys then
          for _, element in ipairs(elements) do growth = growth .. pack('<Hc0', #element, element) end
          full = pack(HINT, #name, name, #growth, growth)
        end
      end
      local at = b.own_size + 1
      while at <= #b.rest do
        local process, ends
        process, ends, at = unpacked(WAITER, b.rest, at)
        if ends > now then
          local hints = hints_of[process] or {}
          hints_of[process] = hints
          hints[#hints + 1] = full and hint_bytes < MAX_HINTS and full or hint
          hint_bytes = hint_bytes + #hints[#hints]
        end
      end
    end
  end
  -- Only hints: a user whose ACL rules forbid the channel has sent its messages all the same.
  if hints_of then
    local channel = sub(meta, 1, -5) .. 'wake:'
    for process, hints in pairs(hints_of) do try('PUBLISH', channel .. process, table.concat(hints)) end
  end
end
if is_step then return {'again'} end
return reply
