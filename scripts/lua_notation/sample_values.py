"""Samples of what stands in place of names: constants, conditions that are known, short names; and of single records."""

VALUES = {
    "a record is read, changed and written, with strings of any length": """
local Thing = record {format = '<dHc0c4', size = 14, 'count', 'name', 'tag', next = 'rest_at', also = {'exists'}}
local function read_thing(key)
  local text = redis.call('GET', key)
  local thing = Thing.new({count = 0, name = '', tag = 'none'})
  if text then
    Thing.read_into(thing, text)
    thing.exists = true
  end
  return thing
end
function entry.go(keys, arguments)
  local key = keys[1]
  redis.call('DEL', key)
  local thing = read_thing(key)
  local before = thing.exists
  thing.count, thing.name = 7, 'a\\0001'
  redis.call('SET', key, Thing.write(thing) .. 'rest')
  local again = read_thing(key)
  local third = Thing.read('xx' .. Thing.write(again), 3)
  return {tostring(before), again.count, again.name, again.tag, again.rest_at, third.name, third.rest_at, Thing.size}
end
""",
    "constants are computed, and strings that meet stay apart": """
local DIGIT, ZERO = '1', '\\0'
local SIZE = 3 * (4 + 5) - 1
local LONG = DIGIT .. ZERO .. DIGIT
local function line(name, kind) return DIGIT .. ZERO .. kind .. name .. ZERO .. DIGIT end
function entry.go(keys, arguments)
  return {SIZE, LONG, line('n', DIGIT), line(arguments[1], ZERO), #LONG, 2 ^ 10, -SIZE, 7 % 4, LONG == '1\\0001'}
end
""",
    "conditions that are known leave nothing behind": """
local ONE, TWO = 'one', 'two'
local function act(family, list)
  if family == ONE then
    list[#list + 1] = 'first'
  elseif family == TWO then
    list[#list + 1] = 'second'
  else
    list[#list + 1] = 'other'
  end
  if not (family == ONE) and list[1] then list[#list + 1] = 'more' end
  return family == ONE and 1 or 2
end
function entry.go(keys, arguments)
  local list = {}
  local a = act(ONE, list)
  local b = act(TWO, list)
  local c = act(arguments[1], list)
  list[#list + 1] = a + 10 * b + 100 * c
  return list
end
""",
    "names do not meet": """
local function sum(a, b)
  local call, format = a + 1, b + 1
  return call + format
end
local function twice(b, a)
  local result = sum(a, b)
  local call = sum(b, result)
  return call, result
end
function entry.go(keys, arguments)
  local a, b, call, sub, result = 1, 2, 3, 4, 5
  local x, y = twice(a, b)
  b, a = twice(b, a)
  result = sum(result, sub)
  redis.call('SET', keys[1], string.sub('abc', 2))
  redis.call('APPEND', keys[1], string.sub('abc', 1, 1))
  return {a, b, call, sub, x, y, result, redis.call('GET', keys[1])}
end
""",
    "what is never assigned is nil, and every turn of a loop begins anew": """
local Clock = record {also = {'now', 'tick'}}
local function look(clock)
  if not clock.now then return 0 end
  return clock.now
end
local function first_of(list, wanted)
  local found
  for i = 1, #list do
    if list[i] == wanted and not found then found = i end
  end
  return found
end
function entry.go(keys, arguments)
  local clock = Clock.new()
  local seen = look(clock)
  local results = {seen}
  for i = 1, 4 do
    local position = first_of({3, 1, 3}, i)
    results[#results + 1] = position or -1
  end
  return results
end
""",
    "lists are sorted by a function of the library": """
local function is_older(one, other) return one.at < other.at or one.at == other.at and one.name < other.name end
function entry.go(keys, arguments)
  local list = {{at = 2, name = 'b'}, {at = 1, name = 'z'}, {at = 2, name = 'a'}}
  table.sort(list, is_older)
  local names = {}
  for i, one in ipairs(list) do names[i] = one.name end
  return names
end
""",
    "an operand that is known does not change the number of results": """
local YES, NO = true, false
local function halves(text) return string.match(text, '^(.-):(.*)$') end
local function all(text) return YES and string.match(text, '^(.-):(.*)$') end
function entry.go(keys, arguments)
  local a, b = YES and halves('a:b')
  local c, d = all('c:d')
  return {a, tostring(b), c, tostring(d), #{NO or string.find('xyz', 'y')}, #{halves('e:f')}}
end
""",
    "constants are computed as Lua computes them": """
local TENTH, MINUS, HEX = 1 % 0.1, -7 % 3, 0xFFFFFFFFFFFFFFFF
local LARGE, SMALL, THIRD = 2 ^ 60 + 1, 2 ^ -3, 1 / 3
local BYTES = '\\0019\\255\\n\\\\\\'"' .. '0'
function entry.go(keys, arguments)
  return {tostring(TENTH), MINUS, tostring(HEX - 0xFFFFFFFFFFFFFFFE), string.format('%.0f', LARGE), tostring(SMALL),
    string.format('%.17g', THIRD), BYTES, tostring(-5.5 % 2), tostring((-2) ^ 2), tostring(-2 ^ 2),
    tostring('1' == 1), tostring(1 < 2), 10 .. ''}
end
""",
    "two signs are no comment": """
local function negative(number) return -number end
function entry.go(keys, arguments)
  local number = tonumber(arguments[1])
  return {-negative(number), -(-number), number - -number, - -1, not not number}
end
""",
    "a number that a command gets stays what it is": """
local COUNT, LARGE, HALF, MINUS = 3, 2 ^ 60, 0.5, -7
function entry.go(keys, arguments)
  redis.call('DEL', keys[1])
  redis.call('RPUSH', keys[1], COUNT, LARGE, HALF, MINUS, 0, 1e14, -1e14, 1e15)
  return redis.call('LRANGE', keys[1], 0, MINUS + 6)
end
""",
    "a function of Lua has a short name where it is used often": """
local function lengths(text, list)
  if string.len(text) > 2 then
    for i = 1, 2 do list[#list + 1] = string.len(text) + string.len(string.rep(text, i)) end
  end
  while string.len(text) > 0 do
    text = string.sub(text, 2)
    list[#list + 1] = string.len(text) .. string.sub(text, 1, 1) .. string.sub(text, -1)
  end
  return list
end
function entry.go(keys, arguments)
  local list = {}
  if arguments[1] == '3' then
    list = lengths('abc', list)
  else
    list[1] = string.len(arguments[1] .. arguments[2])
  end
  list = lengths(arguments[2] .. arguments[1] .. arguments[2], list)
  return list
end
""",
}
