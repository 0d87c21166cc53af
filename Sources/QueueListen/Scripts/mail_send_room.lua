-- The part of a send that makes room in mailboxes that are full: it deletes expired messages and replaced ones, and with
-- DROP_OLDEST the oldest messages, until the new ones fit.
--
-- One script deletes at most MAX_DROP_BYTES, and looks at no more than MAX_LOOKS messages. What is left to do is a later
-- script's: this one then only makes room, and replies {'again'}.
if boxes then
  local MAX_LOOKS, MAX_DROP_BYTES = 1024, 8388608
  local looks, drop_bytes = MAX_LOOKS, MAX_DROP_BYTES
  for number = 1, last_recipient do
    local b = boxes[number]
    -- Messages that do not even fit into an empty mailbox are refused.
    if b and b.is_over and b.last - b.base <= b.max_messages and b.sum - b.base_sum <= b.max_bytes then
      local left = b.base - b.from
      -- The numbers of messages and bytes that must go.
      local count = b.last - b.from - b.max_messages
      local bytes = b.sum - b.from_sum - b.hollow - b.max_bytes
      if b.when_full == DROP_OLDEST and mode == PROBE then
        b.is_over = false
      elseif b.when_full == DROP_OLDEST and b.keyed == 0 and b.hollow == 0 then
        -- Without collapse keys nothing has to be known of the messages but the sum of the last one that goes. The search
        -- begins at the oldest message, because Redis finds an element from the nearer end of the list.
        local low, high, is_found = 1, 1, false
        while low < high or not is_found do
          local middle = is_found and math.floor((low + high) / 2) or high
          local kind, index, sum = unpacked(HEAD_TO_SUM, call('LINDEX', b.mail, format('%d', 2 * middle - 2)))
          local dropped = sum - b.from_sum
          if middle >= count and dropped >= bytes or dropped >= drop_bytes or middle == left then
            high, is_found = middle, true
          else
            low = middle + 1
            if not is_found then high = math.min(2 * middle, left) end
          end
        end
        local kind, index, sum, when, tag = unpacked(HEAD, call('LINDEX', b.mail, format('%d', 2 * high - 2)))
        if high < count or sum - b.from_sum < bytes then is_step = true end
        drop_bytes = drop_bytes - (sum - b.from_sum)
        b.drop, b.from, b.from_tag, b.from_sum, b.is_over = high, index, tag, sum, false
      else
        while (count > 0 or bytes > 0) and looks > 0 and b.drop < left do
          local elements = call('LRANGE', b.mail, format('%d', 2 * b.drop), format('%d', 2 * b.drop + 63))
          for i = 1, #elements, 2 do
            if count <= 0 and bytes <= 0 or looks <= 0 or b.drop >= left then break end
            local kind, index, sum, when, tag = unpacked(HEAD, elements[i])
            local life, key = unpacked(BODY, elements[i + 1])
            local is_needed = kind == MESSAGE and (life == 0 or when + life > now)
            if is_needed and b.when_full == REJECT then return {'full', number} end
            local size = HEAD_SIZE + #elements[i + 1]
            b.hollow = b.hollow - (sum - b.from_sum - size)
            b.from, b.from_tag, b.from_sum, b.drop = index, tag, sum, b.drop + 1
            if key ~= '' and b.keyed > 0 then
              b.old_keys = b.old_keys or {}
              b.old_keys[#b.old_keys + 1] = key
              b.old_keys[#b.old_keys + 1] = index
            end
            count, bytes, looks, drop_bytes = count - 1, bytes - size, looks - 1, drop_bytes - size
          end
        end
        if count > 0 or bytes > 0 then is_step = true end
        b.is_over = false
      end
    end
  end
  if is_step and mode ~= PROBE then
    for number = 1, last_recipient do
      local b = boxes[number]
      if b then
        -- The messages of this send are not stored yet.
        b.last, b.tag, b.sum, b.is_new, plan[2 * number - 1] = b.base, b.base_tag, b.base_sum, false, {}
      end
    end
  end
end
