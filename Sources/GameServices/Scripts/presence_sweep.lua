-- Made from Sources/GameServices/Lua by scripts/lua.
local arguments = ARGV
local epoch, tag, session_id = arguments[1], arguments[2], arguments[4]
local now
local call = redis.call
do
  local time = call('TIME')
  now = time[1] * 1000 + math.floor(time[2] / 1000)
end
local bucket_epoch, bucket_version, bucket_tag, bucket_first, bucket_bytes, bucket_renewed, bucket_exists, bucket_state,
  bucket_index, bucket_due, bucket_log
local keys, unpacked = KEYS, struct.unpack
do
  local state = keys[1]
  local index = keys[2]
  local due = keys[3]
  local log_2 = keys[4]
  bucket_state, bucket_index, bucket_due, bucket_log = state, index, due, log_2
  local stored = call('HGET', state, 'b')
  if stored then
    bucket_epoch, bucket_version, bucket_tag, bucket_first, bucket_bytes, bucket_renewed = unpacked('<c8dc8ddd', stored)
    bucket_exists = call('LLEN', log_2) == bucket_version - bucket_first + 1
  end
end
if not bucket_exists then
  if epoch == '' then
    return {session_id == '' and 'none' or 'lost'}
  end
  call('DEL', bucket_state, bucket_index, bucket_due, bucket_log)
  bucket_exists, bucket_epoch, bucket_version, bucket_tag = true, epoch, 0, tag
  bucket_first, bucket_bytes, bucket_renewed = 0, 8, 0
  call('ZADD', bucket_index, '0', 'a')
  call('ZADD', bucket_due, '+inf', 'a')
  call('RPUSH', bucket_log, tag)
end
local status, last_batch = 'ok', nil
local pack, sub = struct.pack, string.sub
if session_id ~= '' then
  local batch, is_leaving = tonumber(arguments[5]), arguments[7] == 'leave'
  repeat
    local session_field = 's' .. session_id
    local ttl = arguments[6]
    local session_last_batch, session_left
    local session_text = call('HGET', bucket_state, session_field)
    if session_text then
      session_last_batch, session_left = unpacked('<dd', session_text)
    end
    if not session_text or not (session_left == -1 and (tonumber(call('ZSCORE', bucket_due, session_field)) or 0) > now)
      then
      status, last_batch = 'lost', nil
      break
    end
    if session_last_batch < batch then
      status, last_batch = 'rolled back', session_last_batch
      break
    end
    if is_leaving then
      session_left = now
      call('HSET', bucket_state, session_field, pack('<dd', session_last_batch, session_left) .. sub(session_text, 17))
      call('ZADD', bucket_due, '0', session_field)
    else
      call('ZADD', bucket_due, now + ttl, session_field)
    end
    status, last_batch = 'ok', nil
  until true
end
local is_renewed = now - bucket_renewed > 600000 or bucket_renewed > now
if is_renewed then
  call('PEXPIRE', bucket_state, '7200000')
  call('PEXPIRE', bucket_index, '7200000')
  call('PEXPIRE', bucket_due, '7200000')
  call('PEXPIRE', bucket_log, '7200000')
  bucket_renewed = now
end
local edit_tag, edit_logged, edit_published = tag, {}, {}
local ended
do
  local budget = tonumber(arguments[8])
  ended = 0
  while budget > 0 do
    budget = budget - 1
    local member = call('ZRANGEBYSCORE', bucket_due, '-inf', now, 'LIMIT', '0', '1')[1]
    if not member then
      break
    end
    if sub(member, 1, 1) == 's' then
      local session_last_batch, session_left
      local session_text = call('HGET', bucket_state, member)
      if session_text then
        session_last_batch, session_left = unpacked('<dd', session_text)
      end
      local gone = 0
      if session_text and session_left ~= -1 then
        gone = session_left
      end
      call('ZADD', bucket_due, '0', member)
      local limit = budget + 1
      local prefix = member .. '\0'
      local clients = call('ZRANGEBYLEX', bucket_index, '[' .. prefix, '(' .. sub(prefix, 1, -2) .. '\1', 'LIMIT', '0',
        limit)
      for _, member_2 in ipairs(clients) do
        local owner = sub(member_2, #prefix + 1)
        local client_session, client_token = unpacked('<c16c8d', call('HGET', bucket_state, owner))
        local session_id_2 = sub(member, 2)
        local user = string.match(owner, '^c(%Z*)')
        call('ZREM', bucket_index, 's' .. session_id_2 .. '\0' .. owner, 'u' .. user .. '\0' .. owner)
        local of_client = 'o' .. owner .. '\0'
        local client_remains
        repeat
          local next_member = call('ZRANGEBYLEX', bucket_index, '[' .. of_client, '(' .. sub(of_client, 1, -2) .. '\1',
            'LIMIT', '0', '1')[1]
          if not next_member then
            call('HDEL', bucket_state, owner)
            call('ZREM', bucket_due, owner)
            client_remains = false
            break
          end
          local next_object_grace = unpacked('>I4', next_member, #owner + 3)
          call('ZADD', bucket_due, gone + next_object_grace, owner)
          client_remains = true
        until true
        if client_remains then
          local client_session_2, client_token_2, client_gone_2 = session_id_2, client_token, gone
          call('HSET', bucket_state, owner, pack('<c16c8d', client_session_2, client_token_2, client_gone_2))
        end
        local user_field = 'u' .. user
        local clients_of_user = user_field .. '\0'
        local others = call('ZRANGEBYLEX', bucket_index, '[' .. clients_of_user, '(' .. sub(clients_of_user, 1, -2) ..
          '\1', 'LIMIT', '0', '1')
        if #others == 0 then
          local of_user = 'o' .. clients_of_user
          local user_remains
          repeat
            local next_member = call('ZRANGEBYLEX', bucket_index, '[' .. of_user, '(' .. sub(of_user, 1, -2) .. '\1',
              'LIMIT', '0', '1')[1]
            if not next_member then
              call('HDEL', bucket_state, user_field)
              call('ZREM', bucket_due, user_field)
              user_remains = false
              break
            end
            local next_object_grace = unpacked('>I4', next_member, #user_field + 3)
            call('ZADD', bucket_due, gone + next_object_grace, user_field)
            user_remains = true
          until true
          if user_remains then
            call('HSET', bucket_state, user_field, pack('<d', gone))
          end
        end
      end
      if #clients < limit then
        call('ZREM', bucket_due, member)
        call('HDEL', bucket_state, member)
      end
      budget = budget - #clients
    else
      local count
      do
        local budget_2 = budget
        local gone
        repeat
          local stored = call('HGET', bucket_state, member)
          if not stored then
            gone = 0
            break
          end
          if sub(member, 1, 1) == 'u' then
            local user_gone = unpacked('<d', stored)
            gone = user_gone
            break
          end
          local client_session, client_token, client_gone = unpacked('<c16c8d', stored)
          gone = client_gone
        until true
        local prefix = 'o' .. member .. '\0'
        local members
        do
          local limit = budget_2 + 2
          members = call('ZRANGEBYLEX', bucket_index, '[' .. prefix, '(' .. sub(prefix, 1, -2) .. '\1', 'LIMIT', '0',
            limit)
        end
        local reason = gone == 0 and 'd' or 'g'
        count = 0
        for _, member_2 in ipairs(members) do
          local object_grace, object_key_at = unpacked('>I4', member_2, #prefix + 1)
          if gone + object_grace > now or budget_2 < 0 then
            break
          end
          do
            local key = sub(member_2, object_key_at)
            call('HDEL', bucket_state, 'k' .. key)
            call('ZREM', bucket_index, 'k' .. key, 'o' .. member .. '\0' .. pack('>I4', object_grace) .. key)
            local change = 'e' .. reason .. pack('<Hc0Hc0', #member, member, #key, key)
            change = edit_tag .. change
            bucket_version = bucket_version + 1
            bucket_bytes = bucket_bytes + #change
            edit_logged[#edit_logged + 1] = change
            edit_published[#edit_published + 1] = pack('<I4', #change)
            edit_published[#edit_published + 1] = change
          end
          budget_2, count = budget_2 - 1, count + 1
        end
        repeat
          local next_member = members[count + 1]
          if not next_member then
            call('HDEL', bucket_state, member)
            call('ZREM', bucket_due, member)
            break
          end
          local next_object_grace = unpacked('>I4', next_member, #member + 3)
          call('ZADD', bucket_due, gone + next_object_grace, member)
        until true
      end
      budget, ended = budget - count, ended + count
    end
  end
end
local next_due = call('ZRANGEBYSCORE', bucket_due, '-inf', '(+inf', 'WITHSCORES', 'LIMIT', '0', '1')[2]
if #edit_logged > 0 then
  local channel = keys[5]
  local limits = arguments[3]
  local max_count, max_bytes = unpacked('<dd', limits)
  local before = pack('<c8dc8', bucket_epoch, bucket_version - #edit_logged, bucket_tag)
  call('RPUSH', bucket_log, unpack(edit_logged))
  bucket_tag = edit_tag
  while bucket_first < bucket_version and (bucket_version - bucket_first >= max_count or bucket_bytes > max_bytes) do
    bucket_bytes = bucket_bytes - #call('LPOP', bucket_log)
    bucket_first = bucket_first + 1
  end
  call('PUBLISH', channel, before .. table.concat(edit_published))
end
if is_renewed or #edit_logged > 0 then
  call('HSET', bucket_state, 'b', pack('<c8dc8ddd', bucket_epoch, bucket_version, bucket_tag, bucket_first,
    bucket_bytes, bucket_renewed))
end
local wait = next_due and math.max(0, math.ceil(next_due - now)) or -1
return {status, pack('<c8dc8', bucket_epoch, bucket_version, bucket_tag), wait, ended, last_batch}
