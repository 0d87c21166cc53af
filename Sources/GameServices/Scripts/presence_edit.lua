-- Changes objects. Follows presence_head.
local base_version, base_tag = version, tag
local logged, published = {}, {}

local function append(change)
  change = new_tag .. change
  version = version + 1
  bytes = bytes + #change
  logged[#logged + 1] = change
  published[#published + 1] = pack('<I4', #change)
  published[#published + 1] = change
end

local function by_grace(owner, grace, key) return 'o' .. owner .. '\0' .. pack('>I4', grace) .. key end

local function end_object(key, owner, grace, reason)
  call('HDEL', state, 'k' .. key)
  call('ZREM', index, 'k' .. key, by_grace(owner, grace, key))
  append(ENDED .. reason .. pack('<Hc0Hc0', #owner, owner, #key, key))
end

-- Returns up to `limit` members of the index behind this prefix, which ends with a zero byte.
local function members(prefix, limit)
  return call('ZRANGEBYLEX', index, '[' .. prefix, '(' .. string.sub(prefix, 1, -2) .. '\1', 'LIMIT', 0, limit)
end

-- Notes that an owner is gone since `gone`, and when its next object ends. Returns false if it has no objects.
local function await_end(owner, gone, next_member)
  if not next_member then
    call('HDEL', state, owner)
    call('ZREM', due, owner)
    return false
  end
  call('ZADD', due, gone + unpacked('>I4', next_member, #owner + 3), owner)
  return true
end

-- Ends a client's connection at `gone`; 0: its session has died, and no grace period counts.
local function disconnect(owner, sid, token, gone)
  local user = string.match(owner, '^c(%Z*)')
  call('ZREM', index, 's' .. sid .. '\0' .. owner, 'u' .. user .. '\0' .. owner)
  if await_end(owner, gone, members('o' .. owner .. '\0', 1)[1]) then
    call('HSET', state, owner, pack(CLIENT, sid, token, gone))
  end
  if #members('u' .. user .. '\0', 1) == 0 then
    owner = 'u' .. user
    if await_end(owner, gone, members('o' .. owner .. '\0', 1)[1]) then
      call('HSET', state, owner, pack('<d', gone))
    end
  end
end
