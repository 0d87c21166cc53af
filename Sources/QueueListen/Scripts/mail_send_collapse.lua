-- The part of a send that replaces messages that have the same collapse key.
if boxes then
  for number, b in pairs(boxes) do
    -- The first write removes something: Redis allows that at maxmemory.
    if b.drop > 0 then call('HDEL', b.box, '') end
    if b.old_keys then
      for i = 1, #b.old_keys, 2 do
        local field = 'k:' .. b.old_keys[i]
        if tonumber(call('HGET', b.box, field)) == b.old_keys[i + 1] then
          b.keyed = b.keyed - call('HDEL', b.box, field)
        end
      end
    end
    local elements = plan[2 * number - 1]
    if type(elements) == 'string' then elements = {elements, ARGV[2]} end
    for i = 2, has_keys == 1 and #elements or 0, 2 do
      local life, key = unpacked(BODY, elements[i])
      if key ~= '' then
        local field, index = 'k:' .. key, b.base + i / 2
        local older = tonumber(call('HGET', b.box, field) or 0) or 0
        -- After tampering it may be this message, or one after it.
        if older > b.from and older < index then
          -- The messages that make room are deleted at the end.
          local at = 2 * (b.drop + older - b.from - 1)
          local found = call('LRANGE', b.mail, format('%d', at), format('%d', at + 1))
          local kind, its_index, its_sum, its_sent, its_tag = unpacked(HEAD, found[1])
          local its_life, its_key = unpacked(BODY, found[2])
          -- After tampering it may be another message.
          if kind == MESSAGE and its_index == older and its_key == key then
            local empty = pack(BODY, 0, 0, '')
            call('LSET', b.mail, format('%d', at), pack(HEAD, EMPTY, its_index, its_sum, its_sent, its_tag))
            call('LSET', b.mail, format('%d', at + 1), empty)
            b.hollow = b.hollow + #found[2] - #empty
          end
        end
        b.keys = true
        b.keyed = b.keyed + call('HSET', b.box, field, format('%d', index))
      end
    end
  end
end
