"""Samples of calls: parameters, results, early returns, and records that functions get and return."""

CALLS = {
    "a parameter is a copy, and a record is not": """
local Pair = record {also = {'first', 'second'}}
local function change(pair, number)
  number = number + 1
  pair.first = number
  pair.second = (pair.second or 0) + number
end
function entry.go(keys, arguments)
  local number = tonumber(arguments[1])
  local pair = Pair.new({first = 5})
  change(pair, number)
  change(pair, pair.first)
  change(pair, number)
  return {number, pair.first, pair.second}
end
""",
    "a field that is passed beside its record is a copy": """
local Pair = record {also = {'first', 'second'}}
local function add(pair, first)
  pair.first = pair.first + 10
  pair.second = first
end
function entry.go(keys, arguments)
  local pair = Pair.new({first = 1})
  add(pair, pair.first)
  return {pair.first, pair.second}
end
""",
    "early returns, also one after another and inside the call of another function": """
local function sign(number)
  if number < 0 then return 'negative', -number end
  if number == 0 then return 'zero' end
  local half = number / 2
  if half > 10 then
    if half > 100 then return 'huge', half end
    return 'large', half
  end
  return 'small', half
end
local function describe(number)
  local word, value = sign(number)
  if word == 'zero' then return sign(7) end
  return word, value
end
function entry.go(keys, arguments)
  local list = {}
  for number = -2, 50, 4 do
    local word, value = describe(number)
    list[#list + 1] = word .. ':' .. tostring(value)
  end
  local word, value = describe(0)
  list[#list + 1] = word .. value
  word, value = sign(500)
  list[#list + 1] = word .. value
  return list
end
""",
    "a refusal ends the script from the depth": """
local function check(number)
  for i = 1, number do
    if i == 3 then refuse({'three', number}) end
  end
end
local function check_both(one, two)
  check(one)
  check(two)
  return 'both'
end
function entry.go(keys, arguments)
  local word = check_both(tonumber(arguments[1]), tonumber(arguments[2]))
  return word
end
""",
    "a result may be one of several records, and operators keep their order": """
local Box = record {also = {'width', 'height'}}
local function make(width)
  local small = Box.new({width = width, height = 1})
  local large = Box.new({width = width, height = 100})
  if width < 10 then return small end
  return large
end
local function area(box) return box.width * box.height end
local function minus(a, b) return a - b end
function entry.go(keys, arguments)
  local one = make(3)
  local two = make(30)
  local text = 'x' .. area(one) .. '-' .. minus(area(two), area(one)) .. '.'
  return {text, minus(10, minus(5, 2)), minus(minus(10, 5), 2), 2 * minus(5, 2), -minus(1, 2), not (1 == 2) and 'yes' or 'no'}
end
""",
    "calls with several results": """
local function halves(text) return string.match(text, '^(.-):(.*)$') end
local function first(text) return (string.match(text, '^(.-):')) end
local function joined(a, b) return a .. '/' .. (b or 'none') end
function entry.go(keys, arguments)
  local left, right = halves('a:b:c')
  local only = halves('x:y')
  return {left, right, only, joined(first('p:q'), string.find('abc', 'b')), first('k:l')}
end
""",
    "a field that reaches a function through another function is a copy": """
local Pair = record {also = {'first', 'second'}}
local function first_of(pair) return pair.first end
local function add(pair, first)
  pair.first = pair.first + 10
  pair.second = first
end
function entry.go(keys, arguments)
  local pair = Pair.new({first = 1})
  add(pair, first_of(pair))
  return {pair.first, pair.second}
end
""",
    "a function that ends without a return returns nil": """
local function half(number)
  local value = number / 2
  if number > 1 then return value end
end
local function half_again(number)
  if number > 1 then
    local value = half(number)
    return value
  end
end
local function answer(number)
  if number > 2 then return 'more' end
end
function entry.go(keys, arguments)
  local number = tonumber(arguments[1])
  local found = half(number)
  local other = 'other'
  other = half(number)
  other = half_again(number)
  local third = 'third'
  third = half(number)
  if number == 0 or number == 3 then return answer(number) end
  return {tostring(found), tostring(other), tostring(third)}
end
""",
    "what is returned beyond the results is evaluated": """
local function count(key) return redis.call('INCR', key) + 1 end
local function both(key)
  local one = 1
  if key == '' then return 2, 3 end
  return one, redis.call('INCR', key)
end
function entry.go(keys, arguments)
  redis.call('DEL', keys[1])
  count(keys[1])
  local first = both(keys[1])
  local again = 0
  again = both(keys[1])
  both(keys[1])
  return {first, again, redis.call('GET', keys[1])}
end
""",
    "the place of a result is known before the call": """
local Pair = record {also = {'first', 'second'}}
local function bump(pair)
  pair.first = pair.first + 1
  return pair.first * 10
end
local function append(list, value)
  list[#list + 1] = value
  return value + 1
end
function entry.go(keys, arguments)
  local pair = Pair.new({first = 1})
  local list = {0, 0, 0}
  list[pair.first] = bump(pair)
  local other = {}
  other[#other + 1] = append(other, 7)
  return {list[1], list[2], list[3], other[1], #other}
end
""",
    "results that are swapped": """
local function swapped(a, b) return b, a end
local function turned(a, b)
  if a > b then return b, a end
  return a, b
end
function entry.go(keys, arguments)
  local a, b = tonumber(arguments[1]), tonumber(arguments[2])
  a, b = swapped(a, b)
  local c, d = turned(b, a)
  c, a = swapped(a, c)
  a, b = turned(a, b)
  return {a, b, c, d}
end
""",
    "a call of a function as the argument of the same function": """
local function minus(a, b) return a - b end
function entry.go(keys, arguments)
  local a = minus(minus(10, 5), minus(3, 1))
  a = minus(a, minus(a, 1))
  return a
end
""",
}
