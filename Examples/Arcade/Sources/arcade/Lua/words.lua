-- The games of the word game. A player has one game at a time, a hash that expires:
--   id    of the game
--   json  the game

-- Returns {JSON of a game, ms until it expires}, the reply of an entry.
local function read_game(game)
  return {redis.call('HGET', game, 'json'), redis.call('PTTL', game)}
end

-- Begins a game. If the player's game has this id, the call is a repetition and changes nothing.
--
-- KEYS[1] the player's game
-- ARGV[1] id of the game
--     [2] JSON
--     [3] lifetime in ms
-- Reply: {JSON of the game with this id, ms that are left of its lifetime}.
function entry.words_start(keys, arguments)
  local game, id = keys[1], arguments[1]
  if redis.call('HGET', game, 'id') ~= id then
    redis.call('HSET', game, 'id', id, 'json', arguments[2])
    redis.call('PEXPIRE', game, arguments[3])
  end
  return read_game(game)
end

-- Returns a game. Changes nothing.
--
-- KEYS[1] the player's game
-- ARGV[1] id of the game
-- Reply: {JSON, ms that are left of its lifetime}, or {}: there is no game with this id.
function entry.words_read(keys, arguments)
  local game = keys[1]
  if redis.call('HGET', game, 'id') ~= arguments[1] then return {} end
  return read_game(game)
end
