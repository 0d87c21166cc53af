-- Made from Sources/GameServices/Lua by scripts/lua.
local arguments, unpacked = ARGV, struct.unpack
local batch_session, batch_number = unpacked('<c16d', arguments[4])
local session_field = 's' .. batch_session
local now
local call = redis.call
do
  local time = call('TIME')
  now = time[1] * 1000 + math.floor(time[2] / 1000)
end
local seen = tonumber(arguments[1])
local bucket_epoch, bucket_version, bucket_tag, bucket_first, bucket_bytes, bucket_renewed, bucket_exists, bucket_state,
  bucket_index, bucket_due, bucket_log
local keys = KEYS
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
  return {'lost'}
end
local session_last_batch, session_left
local session_text = call('HGET', bucket_state, session_field)
if session_text then
  session_last_batch, session_left = unpacked('<dd', session_text)
end
if not session_text then
  return {'lost'}
end
local sub = string.sub
if session_last_batch == batch_number then
  return {'ok', sub(session_text, 17)}
end
if session_last_batch > batch_number then
  return {'late'}
end
if session_last_batch < batch_number - 1 then
  return {'rolled back', session_last_batch}
end
if not (session_left == -1 and (tonumber(call('ZSCORE', bucket_due, session_field)) or 0) > now) then
  return {'lost'}
end
if bucket_version < seen then
  local tag = arguments[2]
  call('RPUSH', bucket_log, tag)
  call('LTRIM', bucket_log, '-1', '-1')
  bucket_version, bucket_tag, bucket_first, bucket_bytes = seen, tag, seen, 8
end
local reply
local match, pack = string.match, struct.pack
do
  local edit_tag, edit_logged, edit_published = arguments[2], {}, {}
  local results = {}
  for i = 5, #arguments do
    local result, version
    repeat
      local operation = arguments[i]
      local kind = sub(operation, 1, 1)
      if kind == 'c' then
        do
          local connection_user, connection_client, connection_token = unpacked('<Hc0Hc0c8', operation, 2)
          local user_field = 'u' .. connection_user
          local owner = 'c' .. connection_user .. '\0' .. connection_client
          local former = call('HGET', bucket_state, owner)
          if former then
            local client_session = unpacked('<c16c8d', former)
            call('ZREM', bucket_index, 's' .. client_session .. '\0' .. owner)
          end
          local client_session, client_token, client_gone = batch_session, connection_token, -1
          call('HSET', bucket_state, owner, pack('<c16c8d', client_session, client_token, client_gone))
          call('HDEL', bucket_state, user_field)
          call('ZADD', bucket_index, '0', 's' .. batch_session .. '\0' .. owner, '0', user_field .. '\0' .. owner)
          call('ZREM', bucket_due, owner, user_field)
        end
        result, version = 'k', bucket_version
        break
      elseif kind == 'd' then
        local result_2
        repeat
          local connection_user, connection_client, connection_token = unpacked('<Hc0Hc0c8', operation, 2)
          local owner
          repeat
            local owner_2 = 'c' .. connection_user .. '\0' .. connection_client
            local stored = call('HGET', bucket_state, owner_2)
            if not stored then
              owner = nil
              break
            end
            local client_session, client_token, client_gone = unpacked('<c16c8d', stored)
            if client_session == batch_session and client_token == connection_token and client_gone == -1 then
              owner = owner_2
              break
            end
            owner = nil
          until true
          if not owner then
            result_2 = 'x'
            break
          end
          do
            local user = match(owner, '^c(%Z*)')
            call('ZREM', bucket_index, 's' .. batch_session .. '\0' .. owner, 'u' .. user .. '\0' .. owner)
            local of_client = 'o' .. owner .. '\0'
            local client_remains
            repeat
              local next_member = call('ZRANGEBYLEX', bucket_index, '[' .. of_client, '(' .. sub(of_client, 1, -2) ..
                '\1', 'LIMIT', '0', '1')[1]
              if not next_member then
                call('HDEL', bucket_state, owner)
                call('ZREM', bucket_due, owner)
                client_remains = false
                break
              end
              local next_object_grace = unpacked('>I4', next_member, #owner + 3)
              call('ZADD', bucket_due, now + next_object_grace, owner)
              client_remains = true
            until true
            if client_remains then
              local client_session, client_token, client_gone = batch_session, connection_token, now
              call('HSET', bucket_state, owner, pack('<c16c8d', client_session, client_token, client_gone))
            end
            local user_field = 'u' .. user
            local clients_of_user = user_field .. '\0'
            local others = call('ZRANGEBYLEX', bucket_index, '[' .. clients_of_user, '(' .. sub(clients_of_user, 1, -2)
              .. '\1', 'LIMIT', '0', '1')
            if #others == 0 then
              local of_user = 'o' .. clients_of_user
              local user_remains
              repeat
                local next_member = call('ZRANGEBYLEX', bucket_index, '[' .. of_user, '(' .. sub(of_user, 1, -2) ..
                  '\1', 'LIMIT', '0', '1')[1]
                if not next_member then
                  call('HDEL', bucket_state, user_field)
                  call('ZREM', bucket_due, user_field)
                  user_remains = false
                  break
                end
                local next_object_grace = unpacked('>I4', next_member, #user_field + 3)
                call('ZADD', bucket_due, now + next_object_grace, user_field)
                user_remains = true
              until true
              if user_remains then
                call('HSET', bucket_state, user_field, pack('<d', now))
              end
            end
          end
          result_2 = 'k'
        until true
        result, version = result_2, bucket_version
        break
      elseif kind == 'u' then
        repeat
          local update_version, update_key_size, update_key_at = unpacked('<dH', operation, 2)
          local key = sub(operation, update_key_at, update_key_at + update_key_size - 1)
          local object_version, object_grace, object_owner_size, object_exists, object_owner
          do
            object_version, object_grace = 0, 0
            local stored = call('HGET', bucket_state, 'k' .. key)
            if stored then
              object_version, object_grace, object_owner_size = unpacked('<dI4H', stored)
              object_exists = true
              object_owner = sub(stored, 15, 14 + object_owner_size)
            end
          end
          if not object_exists or update_version >= 0 and update_version ~= object_version then
            result, version = 'm', object_version
            break
          end
          local value = sub(operation, update_key_at + update_key_size)
          do
            local change = 'p\0' .. pack('<Hc0Hc0', #object_owner, object_owner, #key, key) .. value
            change = edit_tag .. change
            bucket_version = bucket_version + 1
            bucket_bytes = bucket_bytes + #change
            edit_logged[#edit_logged + 1] = change
            edit_published[#edit_published + 1] = pack('<I4', #change)
            edit_published[#edit_published + 1] = change
          end
          call('HSET', bucket_state, 'k' .. key, pack('<dI4H', bucket_version, object_grace, #object_owner) ..
            object_owner .. value)
          result, version = 'k', bucket_version
        until true
        break
      elseif kind == 'p' then
        repeat
          local connection_user, connection_client, connection_token, connection_rest_at = unpacked('<Hc0Hc0c8',
            operation, 2)
          local put_scope, put_grace, put_only_new, put_key_size, put_key_at = unpacked('<c1I4BH', operation,
            connection_rest_at)
          local owner
          repeat
            local owner_2 = 'c' .. connection_user .. '\0' .. connection_client
            local stored = call('HGET', bucket_state, owner_2)
            if not stored then
              owner = nil
              break
            end
            local client_session, client_token, client_gone = unpacked('<c16c8d', stored)
            if client_session == batch_session and client_token == connection_token and client_gone == -1 then
              owner = owner_2
              break
            end
            owner = nil
          until true
          if not owner then
            result, version = 'x', 0
            break
          end
          local key = sub(operation, put_key_at, put_key_at + put_key_size - 1)
          local object_version, object_grace, object_owner_size, object_exists, object_owner
          do
            object_version, object_grace = 0, 0
            local stored = call('HGET', bucket_state, 'k' .. key)
            if stored then
              object_version, object_grace, object_owner_size = unpacked('<dI4H', stored)
              object_exists = true
              object_owner = sub(stored, 15, 14 + object_owner_size)
            end
          end
          if object_exists and (match(object_owner, '^.(%Z*)') ~= connection_user or put_only_new == 1) then
            result, version = 't', object_version
            break
          end
          if put_scope == 'u' then
            owner = 'u' .. connection_user
          end
          local value = sub(operation, put_key_at + put_key_size)
          do
            local change = 'p' .. (object_exists and '\0' or '\1') .. pack('<Hc0Hc0', #owner, owner, #key, key) .. value
            change = edit_tag .. change
            bucket_version = bucket_version + 1
            bucket_bytes = bucket_bytes + #change
            edit_logged[#edit_logged + 1] = change
            edit_published[#edit_published + 1] = pack('<I4', #change)
            edit_published[#edit_published + 1] = change
          end
          call('HSET', bucket_state, 'k' .. key, pack('<dI4H', bucket_version, put_grace, #owner) .. owner .. value)
          if object_owner ~= owner or object_grace ~= put_grace then
            if object_exists then
              call('ZREM', bucket_index, 'o' .. object_owner .. '\0' .. pack('>I4', object_grace) .. key)
            end
            call('ZADD', bucket_index, '0', 'o' .. owner .. '\0' .. pack('>I4', put_grace) .. key, '0', 'k' .. key)
          end
          result, version = 'k', bucket_version
        until true
        break
      end
      repeat
        local connection_user, connection_client, connection_token, connection_rest_at = unpacked('<Hc0Hc0c8',
          operation, 2)
        local removal_key_size, removal_key_at = unpacked('<H', operation, connection_rest_at)
        local owner
        repeat
          local owner_2 = 'c' .. connection_user .. '\0' .. connection_client
          local stored = call('HGET', bucket_state, owner_2)
          if not stored then
            owner = nil
            break
          end
          local client_session, client_token, client_gone = unpacked('<c16c8d', stored)
          if client_session == batch_session and client_token == connection_token and client_gone == -1 then
            owner = owner_2
            break
          end
          owner = nil
        until true
        if not owner then
          result, version = 'x', 0
          break
        end
        local key = sub(operation, removal_key_at, removal_key_at + removal_key_size - 1)
        local object_version, object_grace, object_owner_size, object_exists, object_owner
        do
          object_version, object_grace = 0, 0
          local stored = call('HGET', bucket_state, 'k' .. key)
          if stored then
            object_version, object_grace, object_owner_size = unpacked('<dI4H', stored)
            object_exists = true
            object_owner = sub(stored, 15, 14 + object_owner_size)
          end
        end
        if not object_exists then
          result, version = 'm', 0
          break
        end
        if match(object_owner, '^.(%Z*)') ~= connection_user then
          result, version = 't', object_version
          break
        end
        call('HDEL', bucket_state, 'k' .. key)
        call('ZREM', bucket_index, 'k' .. key, 'o' .. object_owner .. '\0' .. pack('>I4', object_grace) .. key)
        do
          local change = 'er' .. pack('<Hc0Hc0', #object_owner, object_owner, #key, key)
          change = edit_tag .. change
          bucket_version = bucket_version + 1
          bucket_bytes = bucket_bytes + #change
          edit_logged[#edit_logged + 1] = change
          edit_published[#edit_published + 1] = pack('<I4', #change)
          edit_published[#edit_published + 1] = change
        end
        result, version = 'k', bucket_version
      until true
    until true
    results[#results + 1] = pack('<c1d', result, version)
  end
  reply = table.concat(results)
  session_last_batch = batch_number
  call('HSET', bucket_state, session_field, pack('<dd', session_last_batch, session_left) .. reply)
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
end
call('HSET', bucket_state, 'b', pack('<c8dc8ddd', bucket_epoch, bucket_version, bucket_tag, bucket_first, bucket_bytes,
  bucket_renewed))
return {'ok', reply}
