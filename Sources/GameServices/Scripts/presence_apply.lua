-- Carries out a batch of operations of a session, once. Follows presence_edit, before presence_end.
-- ARGV[4] the session and the number of the batch (BATCH)
-- ARGV[5...] the operations: a letter, then what it needs
local BATCH = '<c16d'
-- user, client, token
local CONNECT, DISCONNECT = 'c', 'd'
-- user, client, token, scope (c or u), grace, 1 to refuse an object that exists, length of the key; then key and value
local PUT_OBJECT = 'p'
-- version that the object must have, or -1 for any, length of the key; then key and value
local UPDATE = 'u'
-- user, client, token, length of the key, key
local REMOVE = 'r'
-- Results, each with a version (8 bytes): of the change, or of the object that prevented it
local DONE, SUPERSEDED, TAKEN, CHANGED = 'k', 'x', 't', 'm'

local sid, number = unpacked(BATCH, ARGV[4])
local session = bucket and call('HGET', state, 's' .. sid)
if not session then
  return {'lost'}
end
local last, left = unpacked(SESSION, session)
-- The reply to this batch was lost.
if last == number then
  return {'ok', string.sub(session, 17)}
end
if last > number then
  return {'late'}
end
-- Redis has lost an earlier batch.
if last < number - 1 then
  return {'rolled back'}
end
-- A session that has expired is never used again, even before it is swept.
if left ~= IN_USE or (tonumber(call('ZSCORE', due, 's' .. sid)) or 0) <= now then
  return {'lost'}
end
local results = {}

local function connection(user, client, token)
  local owner = 'c' .. user .. '\0' .. client
  local record = call('HGET', state, owner)
  if record then
    local its_sid, its_token, gone = unpacked(CLIENT, record)
    if its_sid == sid and its_token == token and gone == CONNECTED then
      return owner
    end
  end
end

for i = 5, #ARGV do
  local operation = ARGV[i]
  local kind = string.sub(operation, 1, 1)
  local result, result_version = DONE, version
  if kind == CONNECT then
    local user, client, token = unpacked('<Hc0Hc0c8', operation, 2)
    local owner = 'c' .. user .. '\0' .. client
    local record = call('HGET', state, owner)
    if record then
      -- The connection that it replaces, of this process or of another one, ends without a trace.
      call('ZREM', index, 's' .. string.sub(record, 1, 16) .. '\0' .. owner)
    end
    call('HSET', state, owner, pack(CLIENT, sid, token, CONNECTED))
    call('HDEL', state, 'u' .. user)
    call('ZADD', index, 0, 's' .. sid .. '\0' .. owner, 0, 'u' .. user .. '\0' .. owner)
    call('ZREM', due, owner, 'u' .. user)
  elseif kind == DISCONNECT then
    local user, client, token = unpacked('<Hc0Hc0c8', operation, 2)
    local owner = connection(user, client, token)
    if owner then
      disconnect(owner, sid, token, now)
    else
      result = SUPERSEDED
    end
  elseif kind == UPDATE then
    local expected, length, start = unpacked('<dH', operation, 2)
    local key = string.sub(operation, start, start + length - 1)
    local object = call('HGET', state, 'k' .. key)
    local found, grace, owner_length = 0, 0, 0
    if object then found, grace, owner_length = unpacked(OBJECT, object) end
    if not object or (expected >= 0 and expected ~= found) then
      result, result_version = CHANGED, found
    else
      local owner = string.sub(object, OBJECT_SIZE + 1, OBJECT_SIZE + owner_length)
      local value = string.sub(operation, start + length)
      append(PUT .. '\0' .. pack('<Hc0Hc0', #owner, owner, #key, key) .. value)
      call('HSET', state, 'k' .. key, pack(OBJECT, version, grace, #owner) .. owner .. value)
      result_version = version
    end
  else
    local user, client, token, start = unpacked('<Hc0Hc0c8', operation, 2)
    local owner = connection(user, client, token)
    local scope, new_grace, only_new, length = 'c', 0, 0, 0
    if kind == PUT_OBJECT then
      scope, new_grace, only_new, length, start = unpacked('<c1I4BH', operation, start)
    else
      length, start = unpacked('<H', operation, start)
    end
    local key = string.sub(operation, start, start + length - 1)
    local object = owner and call('HGET', state, 'k' .. key)
    local found, grace, former = 0, 0, nil
    if object then
      local owner_length
      found, grace, owner_length = unpacked(OBJECT, object)
      former = string.sub(object, OBJECT_SIZE + 1, OBJECT_SIZE + owner_length)
    end
    if not owner then
      result, result_version = SUPERSEDED, 0
    elseif former and string.match(former, '^.(%Z*)') ~= user or object and only_new == 1 then
      result, result_version = TAKEN, found
    elseif kind == REMOVE then
      if object then
        end_object(key, former, grace, 'r')
        result_version = version
      else
        result, result_version = CHANGED, 0
      end
    else
      if scope == 'u' then owner = 'u' .. user end
      local value = string.sub(operation, start + length)
      append(PUT .. (object and '\0' or '\1') .. pack('<Hc0Hc0', #owner, owner, #key, key) .. value)
      call('HSET', state, 'k' .. key, pack(OBJECT, version, new_grace, #owner) .. owner .. value)
      if former ~= owner or grace ~= new_grace then
        if former then call('ZREM', index, by_grace(former, grace, key)) end
        call('ZADD', index, 0, by_grace(owner, new_grace, key), 0, 'k' .. key)
      end
      result_version = version
    end
  end
  results[#results + 1] = pack('<c1d', result, result_version)
end
results = table.concat(results)
call('HSET', state, 's' .. sid, pack(SESSION, number, IN_USE) .. results)
