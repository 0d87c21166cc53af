-- Made from Sources/QueueListen/Lua by scripts/lua.
local keys = KEYS
local meta, sent, recipients, seen = keys[1], keys[2], (#keys - 2) / 2, nil
local request_text
local arguments, unpacked = ARGV, struct.unpack
local request_mode, request_partitions, request_has_keys, request_messages, request_place, request_number,
  request_answer_ttl, request_fingerprint, request_condition, request_max_messages, request_max_bytes,
  request_when_full, request_max_age, request_ttl, request_first_tag, request_more_tags_at =
  unpacked('<BHBHc2ddc8dddBddc8', arguments[1])
request_text = arguments[1]
local now
local call = redis.call
do
  local time = call('TIME')
  now = time[1] * 1000 + time[2] / 1000
end
local expiry_set
local try = redis.pcall
do
  local earlier, answered
  earlier, answered, expiry_set = try('HGET', sent, request_place), 0, 0
  if earlier then
    if earlier.err then
      return {'foreign', sent}
    end
    local answer_number, answer_expiry_set = unpacked('<dd', earlier)
    if request_number < answer_number then
      return {'stale'}
    end
    if request_number == answer_number then
      local repeated_number, repeated_expiry_set, repeated_fingerprint, repeated_results_at = unpacked('<ddc8', earlier)
      if repeated_fingerprint ~= request_fingerprint then
        return {'conflict'}
      end
      return {'ok', request_mode == 1 and string.format('%d', now) or string.sub(earlier, repeated_results_at)}
    end
    answered, expiry_set = answer_number, answer_expiry_set
  end
  if request_mode == 2 then
    if now > request_condition then
      return {'late'}
    end
  elseif request_condition > answered then
    return {'behind'}
  end
  if request_messages > 768 then
    return redis.error_reply('RDC too many messages')
  end
end
local is_alone = recipients == 1 and request_messages == 1 and request_max_age == 0 and request_mode ~= 1
local plan_writes, plan_boxes, plan_reply, plan_results
local plan_is_unchecked, plan_is_partition_new, plan_is_step = is_alone, false, false
local pack = struct.pack
for number = 1, recipients do
  local box, mail = keys[2 * number + 1], keys[2 * number + 2]
  if recipients > 1 then
    seen = seen or {}
    if seen[box] then
      return redis.error_reply('RDC a recipient is named twice')
    end
    seen[box] = true
  end
  local state_partitions, state_epoch, state_last, state_tag, state_from, state_from_tag, state_sum, state_from_sum,
    state_hollow, state_keyed, state_due, state_own_size, state_rest_at, state_is_new, state_is_partition_new
  local text
  do
    text = try('HGET', box, 'm')
    if text then
      if text.err then
        return {'foreign', box}
      end
      state_partitions, state_epoch, state_last, state_tag, state_from, state_from_tag, state_sum, state_from_sum,
        state_hollow, state_keyed, state_due, state_own_size, state_rest_at = unpacked('<Hc8dc8dc8dddddB', text)
      if state_partitions ~= request_partitions then
        return {'partitions', string.format('%d', state_partitions)}
      end
    else
      do
        local layout = try('HGET', meta, 'partitions')
        if type(layout) == 'table' then
          return {'foreign', meta}
        end
        if layout and layout ~= request_partitions .. ' layout 2' then
          return {'partitions', layout}
        end
        state_is_partition_new = not layout
      end
      state_partitions, state_epoch, state_is_new = request_partitions, request_first_tag, true
      state_last, state_tag, state_from, state_from_tag, state_sum, state_from_sum = 0, '\0\0\0\0\0\0\0\0', 0,
        '\0\0\0\0\0\0\0\0', 0, 0
      state_hollow, state_keyed, state_due, state_own_size = 0, 0, 0, 0
      text, state_rest_at = '', 1
    end
    if not plan_is_unchecked then
      local messages = state_last - state_from
      local count = try('LLEN', mail)
      if count ~= 2 * messages then
        if type(count) == 'table' then
          return {'foreign', mail}
        end
        return {'damaged', number}
      end
    end
    local known_at = request_more_tags_at + 8 * (request_messages - 1)
    if known_at <= #request_text and unpacked('c8', request_text, known_at + 24 * number - 8) ~= state_tag then
      if plan_is_unchecked then
        do
          local messages = state_last - state_from
          local count = try('LLEN', mail)
          if count ~= 2 * messages then
            if type(count) == 'table' then
              return {'foreign', mail}
            end
            return {'damaged', number}
          end
        end
        plan_is_unchecked = false
      end
      local known_epoch, known_index, known_tag = unpacked('<c8dc8', request_text, known_at + 24 * (number - 1))
      if known_index > 0 then
        if known_index >= state_last or known_epoch ~= state_epoch then
          return {'damaged', number}
        end
        local tag
        repeat
          if known_index > state_from then
            local head_kind, head_index, head_sum, head_sent, head_tag = unpacked('<BI6I6I6c8', call('LINDEX', mail,
              string.format('%d', 2 * (known_index - state_from - 1))))
            tag = head_tag
            break
          elseif known_index == state_from then
            tag = state_from_tag
            break
          end
          local history = call('HGET', box, 'h') or ''
          local at = #history - 8 * (state_from - known_index) - 7
          tag = at > 0 and string.sub(history, -8) == state_from_tag and string.sub(history, at, at + 7)
        until true
        if tag and tag ~= known_tag then
          return {'damaged', number}
        end
      elseif text == '' and known_epoch ~= '\0\0\0\0\0\0\0\0' then
        state_epoch = known_epoch
      end
    end
  end
  if state_is_partition_new then
    plan_is_partition_new = true
  end
  local limits_max_messages, limits_max_bytes, limits_when_full, limits_max_age, limits_ttl = request_max_messages,
    request_max_bytes, request_when_full, request_max_age, request_ttl
  if state_own_size > 0 then
    limits_max_messages, limits_max_bytes, limits_when_full, limits_max_age, limits_ttl = unpacked('<ddBddddd', text,
      state_rest_at)
  end
  do
    local index = state_last + 1
    local result = pack('<dc8', index, state_epoch)
    if number == 1 then
      plan_reply = result
    else
      plan_results = plan_results or {plan_reply}
      plan_results[number] = result
    end
  end
  local base, base_tag, base_sum = state_last, state_tag, state_sum
  local elements
  repeat
    if request_messages == 1 and limits_max_age == 0 then
      state_tag = request_first_tag
      state_last, state_sum = state_last + 1, state_sum + 27 + #arguments[2]
      elements = pack('<BI6I6I6c8', 77, state_last, state_sum, now, state_tag)
      break
    end
    local list = arguments[1 + request_messages + number]
    local numbers, elements_2 = nil, {}
    if list and list ~= '' then
      local numbers_2 = {}
      for word in string.gmatch(list, '%d+') do
        numbers_2[#numbers_2 + 1] = tonumber(word)
      end
      numbers = numbers_2
    end
    for i = 1, numbers and #numbers or request_messages do
      local position = numbers and numbers[i] or i
      local body = arguments[1 + position]
      if limits_max_age > 0 then
        local life = unpacked('<I6', body)
        if life == 0 or limits_max_age < life then
          body = pack('<I6', limits_max_age) .. string.sub(body, 7)
        end
      end
      state_tag = unpacked('c8', request_text, request_more_tags_at + 8 * (position - 2))
      state_last, state_sum = state_last + 1, state_sum + 27 + #body
      elements_2[2 * i - 1] = pack('<BI6I6I6c8', 77, state_last, state_sum, now, state_tag)
      elements_2[2 * i] = body
    end
    elements = elements_2
  until true
  local is_over = request_mode ~= 2 and (state_last - state_from > limits_max_messages or state_sum - state_from_sum -
    state_hollow > limits_max_bytes)
  if base == state_from or is_over or state_rest_at <= #text or request_has_keys == 1 or limits_ttl > 0 and state_due <=
    now or limits_ttl == 0 and state_due > 0 then
    if plan_is_unchecked then
      local messages = base - state_from
      local count = try('LLEN', mail)
      if count ~= 2 * messages then
        if type(count) == 'table' then
          return {'foreign', mail}
        end
        return {'damaged', number}
      end
    end
    plan_boxes = plan_boxes or {}
    plan_boxes[number] = {number = number, box = box, mail = mail, epoch = state_epoch, last = state_last, tag =
      state_tag, from = state_from, from_tag = state_from_tag, sum = state_sum, from_sum = state_from_sum, hollow =
      state_hollow, keyed = state_keyed, due = state_due, own_size = state_own_size, rest = string.sub(text,
      state_rest_at), is_new = state_is_new, is_over = is_over, base = base, base_tag = base_tag, base_sum = base_sum,
      drop = 0, max_messages = limits_max_messages, max_bytes = limits_max_bytes, when_full = limits_when_full, ttl =
      limits_ttl}
    plan_writes = plan_writes or {0, 0}
    plan_writes[2 * number - 1], plan_writes[2 * number] = elements, false
  elseif is_alone then
    local body = arguments[2]
    local count = try('RPUSH', mail, elements, body)
    if count == 2 * (state_last - state_from) then
      do
        local is_renewed = expiry_set + request_answer_ttl / 2 < now
        call('HSET', sent, request_place, pack('<ddc8c0', request_number, is_renewed and now or expiry_set,
          request_fingerprint, plan_reply))
        if is_renewed then
          call('PEXPIRE', sent, string.format('%d', request_answer_ttl))
        end
      end
      call('HSET', box, 'm', pack('<Hc8dc8dc8dddddB', state_partitions, state_epoch, state_last, state_tag, state_from,
        state_from_tag, state_sum, state_from_sum, state_hollow, state_keyed, state_due, state_own_size))
      return plan_reply
    end
    if type(count) == 'table' then
      do
        local messages = state_last - state_from - 1
        local count_2 = try('LLEN', mail)
        if count_2 ~= 2 * messages then
          if type(count_2) == 'table' then
            return {'foreign', mail}
          end
          return {'damaged', 1}
        end
      end
      call('RPUSH', mail, elements, body)
    end
    call('LTRIM', mail, '0', '-3')
    return {'damaged', 1}
  else
    local state = pack('<Hc8dc8dc8dddddB', state_partitions, state_epoch, state_last, state_tag, state_from,
      state_from_tag, state_sum, state_from_sum, state_hollow, state_keyed, state_due, state_own_size)
    plan_writes = plan_writes or {0, 0}
    plan_writes[2 * number - 1], plan_writes[2 * number] = elements, state
  end
end
if plan_boxes then
  do
    local budget_looks, budget_bytes = 1024, 8388608
    for number = 1, recipients do
      local box = plan_boxes[number]
      if box and box.is_over and box.last - box.base <= box.max_messages and box.sum - box.base_sum <= box.max_bytes
        then
        local has_room
        do
          local left
          left, has_room = box.base - box.from, true
          local count = box.last - box.from - box.max_messages
          local bytes = box.sum - box.from_sum - box.hollow - box.max_bytes
          if box.when_full ~= 1 or request_mode ~= 1 then
            local format = string.format
            if box.when_full == 1 and box.keyed == 0 and box.hollow == 0 then
              local last
              do
                local low, is_found
                low, last, is_found = 1, 1, false
                while low < last or not is_found do
                  local middle = is_found and math.floor((low + last) / 2) or last
                  local head_kind, head_index, head_sum = unpacked('<BI6I6', call('LINDEX', box.mail, format('%d', 2 *
                    (middle - 1))))
                  local dropped = head_sum - box.from_sum
                  if middle >= count and dropped >= bytes or dropped >= budget_bytes or middle == left then
                    last, is_found = middle, true
                  else
                    low = middle + 1
                    if not is_found then
                      last = math.min(2 * middle, left)
                    end
                  end
                end
              end
              local head_kind, head_index, head_sum, head_sent, head_tag = unpacked('<BI6I6I6c8', call('LINDEX',
                box.mail, format('%d', 2 * (last - 1))))
              local dropped = head_sum - box.from_sum
              budget_bytes = budget_bytes - dropped
              box.drop, box.from, box.from_tag, box.from_sum = last, head_index, head_tag, head_sum
              has_room = last >= count and dropped >= bytes
            else
              local count_2 = count
              local bytes_2 = bytes
              while (count_2 > 0 or bytes_2 > 0) and budget_looks > 0 and box.drop < left do
                local elements = call('LRANGE', box.mail, format('%d', 2 * box.drop), format('%d', 2 * box.drop + 63))
                for i = 1, #elements, 2 do
                  if count_2 <= 0 and bytes_2 <= 0 or budget_looks <= 0 or box.drop >= left then
                    break
                  end
                  local head_kind, head_index, head_sum, head_sent, head_tag = unpacked('<BI6I6I6c8', elements[i])
                  local body_life, body_key = unpacked('<I6Bc0', elements[i + 1])
                  local is_needed = head_kind == 77 and (body_life == 0 or head_sent + body_life > now)
                  if is_needed and box.when_full == 0 then
                    return {'full', box.number}
                  end
                  local size = 27 + #elements[i + 1]
                  box.hollow = box.hollow - (head_sum - box.from_sum - size)
                  box.from, box.from_tag, box.from_sum, box.drop = head_index, head_tag, head_sum, box.drop + 1
                  if body_key ~= '' and box.keyed > 0 then
                    box.old_keys = box.old_keys or {}
                    box.old_keys[#box.old_keys + 1] = body_key
                    box.old_keys[#box.old_keys + 1] = head_index
                  end
                  count_2, bytes_2, budget_looks, budget_bytes = count_2 - 1, bytes_2 - size, budget_looks - 1,
                    budget_bytes - size
                end
              end
              has_room = count_2 <= 0 and bytes_2 <= 0
            end
          end
          box.is_over = false
        end
        if not has_room then
          plan_is_step = true
        end
      end
    end
    if plan_is_step and request_mode ~= 1 then
      for number = 1, recipients do
        local box = plan_boxes[number]
        if box then
          box.last, box.tag, box.sum, box.is_new = box.base, box.base_tag, box.base_sum, false
          plan_writes[2 * number - 1] = {}
        end
      end
    end
  end
  for number, box in pairs(plan_boxes) do
    if box.is_over then
      return {'full', number}
    end
  end
end
if request_mode == 1 then
  return {'ok', string.format('%d', now)}
end
if plan_results then
  plan_reply = table.concat(plan_results)
end
if not plan_is_step then
  do
    local is_renewed = expiry_set + request_answer_ttl / 2 < now
    call('HSET', sent, request_place, pack('<ddc8c0', request_number, is_renewed and now or expiry_set,
      request_fingerprint, plan_reply))
    if is_renewed then
      call('PEXPIRE', sent, string.format('%d', request_answer_ttl))
    end
  end
  if plan_is_partition_new then
    call('HSET', meta, 'partitions', request_partitions .. ' layout 2')
  end
  local body = arguments[2]
  for number = 1, recipients do
    local elements, state = plan_writes[2 * number - 1], plan_writes[2 * number]
    if #elements == 27 then
      call('RPUSH', keys[2 * number + 2], elements, body)
    else
      call('RPUSH', keys[2 * number + 2], unpack(elements))
    end
    if state then
      call('HSET', keys[2 * number + 1], 'm', state)
    end
  end
end
if plan_boxes then
  local format = string.format
  do
    local body = arguments[2]
    for number, box in pairs(plan_boxes) do
      if box.drop > 0 then
        call('HDEL', box.box, '')
      end
      if box.old_keys then
        local deleted
        do
          local box_2 = box.box
          local dead_keys = box.old_keys
          deleted = 0
          for i = 1, #dead_keys, 2 do
            local field = 'k:' .. dead_keys[i]
            if tonumber(call('HGET', box_2, field)) == dead_keys[i + 1] then
              deleted = deleted + call('HDEL', box_2, field)
            end
          end
        end
        box.keyed = box.keyed - deleted
      end
      if request_has_keys == 1 then
        local elements = plan_writes[2 * number - 1]
        if type(elements) == 'string' then
          elements = {elements, body}
        end
        for i = 2, #elements, 2 do
          local body_life, body_key = unpacked('<I6Bc0', elements[i])
          if body_key ~= '' then
            local field, index = 'k:' .. body_key, box.base + i / 2
            local older = tonumber(call('HGET', box.box, field) or 0) or 0
            if older > box.from and older < index then
              local at = 2 * (box.drop + older - box.from - 1)
              local found = call('LRANGE', box.mail, format('%d', at), format('%d', at + 1))
              local head_kind, head_index, head_sum, head_sent, head_tag = unpacked('<BI6I6I6c8', found[1])
              local body_life_2, body_key_2 = unpacked('<I6Bc0', found[2])
              if head_kind == 77 and head_index == older and body_key_2 == body_key then
                local empty = pack('<I6Bc0', 0, 0, '')
                head_kind = 88
                call('LSET', box.mail, format('%d', at), pack('<BI6I6I6c8', head_kind, head_index, head_sum, head_sent,
                  head_tag))
                call('LSET', box.mail, format('%d', at + 1), empty)
                box.hollow = box.hollow + #found[2] - #empty
              end
            end
            box.keys = true
            box.keyed = box.keyed + call('HSET', box.box, field, format('%d', index))
          end
        end
      end
    end
  end
  local body = arguments[2]
  local wake_ups_lists
  local wake_ups_bytes = 0
  for number, box in pairs(plan_boxes) do
    do
      local is_due, is_freed = box.ttl > 0 and box.due <= now, box.ttl == 0 and box.due > 0
      if is_due then
        box.due = now + math.floor(box.ttl / 8)
      elseif is_freed then
        box.due = 0
      end
      if box.drop > 0 then
        call('LTRIM', box.mail, format('%d', 2 * box.drop), '-1')
      end
      local has_list = box.last > box.from
      if box.last > 0 then
        call('HSET', box.box, 'm', pack('<Hc8dc8dc8dddddB', request_partitions, box.epoch, box.last, box.tag, box.from,
          box.from_tag, box.sum, box.from_sum, box.hollow, box.keyed, box.due, box.own_size) .. box.rest)
      end
      if is_due then
        local until_ms = format('%d', now + box.ttl + math.floor(box.ttl / 8))
        call('PEXPIREAT', box.box, until_ms)
        if has_list then
          call('PEXPIREAT', box.mail, until_ms)
        end
      elseif is_freed then
        call('PERSIST', box.box)
        if has_list then
          call('PERSIST', box.mail)
        end
      elseif box.ttl > 0 and box.base == box.from and has_list then
        call('PEXPIREAT', box.mail, format('%d', box.due + box.ttl))
      end
    end
    if box.last > box.base and (box.is_new or #box.rest > box.own_size) then
      local elements = plan_writes[2 * number - 1]
      local name
      do
        local box_2 = box.box
        name = string.sub(box_2, #meta + 1)
      end
      local growth_epoch, growth_start_index, growth_start_tag, growth_end_index, growth_end_tag = box.epoch, box.base,
        box.base_tag, box.last, box.tag
      local packed, full = pack('<c8I6c8I6c8', growth_epoch, growth_start_index, growth_start_tag, growth_end_index,
        growth_end_tag), nil
      local short = pack('<Hc0Hc0', #name, name, #packed, packed)
      wake_ups_lists = wake_ups_lists or {}
      if box.is_new then
        wake_ups_lists.all = wake_ups_lists.all or {}
        wake_ups_lists.all[#wake_ups_lists.all + 1] = short
      elseif box.sum - box.base_sum <= 1024 then
        if type(elements) == 'string' then
          elements = {elements, body}
        end
        if #elements == 2 or not box.keys then
          do
            local growth = packed
            for _, element in ipairs(elements) do
              growth = growth .. pack('<Hc0', #element, element)
            end
            packed = growth
          end
          full = pack('<Hc0Hc0', #name, name, #packed, packed)
        end
      end
      local at = box.own_size + 1
      while at <= #box.rest do
        local waiter_process, waiter_ends, waiter_next_at = unpacked('<c16d', box.rest, at)
        at = waiter_next_at
        if waiter_ends > now then
          local list = wake_ups_lists[waiter_process] or {}
          wake_ups_lists[waiter_process] = list
          list[#list + 1] = full and wake_ups_bytes < 65536 and full or short
          wake_ups_bytes = wake_ups_bytes + #list[#list]
        end
      end
    end
  end
  if wake_ups_lists then
    local channel = string.sub(meta, 1, -5) .. 'wake:'
    for process, list in pairs(wake_ups_lists) do
      try('PUBLISH', channel .. process, table.concat(list))
    end
  end
end
if plan_is_step then
  return {'again'}
end
return plan_reply
