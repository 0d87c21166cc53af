-- The accounts of players. An account is a hash with these fields:
--   secret    hash of the secret of the browser that the name belongs to
--   logins    number of logins
--   password  hash of the password; without it, the account is a guest's and expires
--   email, verified  address, and 1 when its owner has confirmed it
-- A code that was sent to an address is a string: its hash, after 'used ' once it was used.

-- Logs a browser in under a name.
--
-- KEYS[1] account
-- ARGV[1] hash of the browser's secret
--     [2] seconds that the account of a guest remains
--     [3] 1 to create an account that is missing, else 0
-- Reply: 1 if the name is this browser's, 0 if it is another player's, -1 if there is no account and none is created.
function entry.account_claim(keys, arguments)
  local account, secret = keys[1], arguments[1]
  local stored = redis.call('HGET', account, 'secret')
  if not stored and redis.call('EXISTS', account) == 0 then
    if arguments[3] == '0' then return -1 end
    redis.call('HSET', account, 'secret', secret)
    stored = secret
  end
  if stored ~= secret then return 0 end
  redis.call('HINCRBY', account, 'logins', 1)
  if redis.call('HEXISTS', account, 'password') == 0 then redis.call('EXPIRE', account, arguments[2]) end
  return 1
end

-- Registers a name: the account remains.
--
-- KEYS[1] account
-- ARGV[1] hash of the password
--     [2] address
-- Reply: 1, or 0 if it was registered before.
function entry.account_register(keys, arguments)
  local account = keys[1]
  if redis.call('HSETNX', account, 'password', arguments[1]) == 0 then return 0 end
  redis.call('HSET', account, 'email', arguments[2])
  redis.call('PERSIST', account)
  return 1
end

-- Replaces the address of an account, and deletes the code that was sent to the former one.
--
-- KEYS[1] account
--     [2] code that verifies its address
-- ARGV[1] another address
-- Reply: 1, or 0 if the account's address is verified: it stays.
function entry.account_correct_email(keys, arguments)
  local account = keys[1]
  if redis.call('HGET', account, 'verified') == '1' then return 0 end
  redis.call('HSET', account, 'email', arguments[1])
  redis.call('DEL', keys[2])
  return 1
end

-- Changes an account if a code is right, which is then used up.
--
-- KEYS[1] code
--     [2] account
-- ARGV[1] hash of the code
--     [2] a field to set, and [3] its value
--     [4] a field to delete; may be missing
-- Reply: 1 if it has set the field, 2 if it had done so before, else 0.
function entry.account_redeem(keys, arguments)
  local key, account, given = keys[1], keys[2], arguments[1]
  local code = redis.call('GET', key)
  if code == 'used ' .. given then return 2 end
  if code ~= given then return 0 end
  redis.call('SET', key, 'used ' .. code, 'KEEPTTL')
  redis.call('HSET', account, arguments[2], arguments[3])
  if arguments[4] then redis.call('HDEL', account, arguments[4]) end
  return 1
end

-- Deletes the account of a guest.
--
-- KEYS[1] account
-- Reply: the number of accounts that were deleted: 0 or 1. An account whose name is registered stays.
function entry.account_leave(keys)
  local account = keys[1]
  if redis.call('HEXISTS', account, 'password') == 1 then return 0 end
  return redis.call('DEL', account)
end
