#!/usr/bin/env python3
"""Tests scripts/lua: test.py SOCKET, with the Unix socket of a Redis server that may be filled.

Each sample is a library that is also plain Lua. So Redis runs it twice, as its functions and as the flat text, and both
must reply the same. Then each rule of the notation is broken once, and must be reported.
"""

import socket
import sys
import tempfile
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from lua_notation.check import Checker  # noqa: E402
from lua_notation.flatten import Flattener  # noqa: E402
from lua_notation.library import Library  # noqa: E402
from lua_notation.printer import block  # noqa: E402
from lua_notation.syntax import NotationError  # noqa: E402

# The Lua that makes a library a plain program: records are tables, and a refusal is an error that the caller of the entry catches.
PRELUDE = """
local entry = {}
local function refuse(reply) error({refusal = reply}) end
local function record(of)
  local fields, values = {}, of
  for i = 1, #of do fields[i] = of[i] end
  -- The fields whose length stands before them in the format.
  local has_length, count = {}, 0
  for letter, digits in string.gmatch(string.gsub(of.format or '', '[<>=! x]', ''), '(%a)(%d*)') do
    if letter == 'c' and digits == '0' then has_length[count] = true else count = count + 1 end
  end
  local function read_into(one, ...)
    local found = {struct.unpack(of.format, ...)}
    for i = 1, #fields do one[fields[i]] = found[i] end
    if of.next then one[of.next] = found[#fields + 1] end
  end
  return {
    size = of.size,
    format = of.format,
    new = function(given)
      local one = {}
      for name, value in pairs(given or {}) do one[name] = value end
      return one
    end,
    read = function(...)
      local one = {}
      read_into(one, ...)
      return one
    end,
    read_into = read_into,
    write = function(one)
      local list = {}
      for i = 1, #fields do
        local value = one[fields[i]]
        if has_length[i] then list[#list + 1] = #value end
        list[#list + 1] = value
      end
      return struct.pack(of.format, unpack(list))
    end,
  }
end
"""
ENDING = """
local ok, reply = pcall(entry.go, KEYS, ARGV)
if ok then return reply end
if type(reply) == 'table' and reply.refusal then return reply.refusal end
return redis.error_reply(tostring(reply))
"""

SAMPLES = {
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
    "a call of a function as the argument of the same function": """
local function minus(a, b) return a - b end
function entry.go(keys, arguments)
  local a = minus(minus(10, 5), minus(3, 1))
  a = minus(a, minus(a, 1))
  return a
end
""",
}
ARGUMENTS = [["3", "1"], ["1", "5"], ["2", "2"], ["0", "9"]]

HEADER = "-- A sample.\n"
ENTRY = "-- An entry.\n-- KEYS\n-- Reply\nfunction entry.go(keys, arguments) {} end\n"
BROKEN = {
    "is not declared": HEADER + ENTRY.format("return nothing"),
    "x is not declared": HEADER + "-- f\nlocal function f() return x end\n" + ENTRY.format("local x = 1 local y = f() return x + y"),
    "ONE is not used": HEADER + "local ONE = 1\n" + ENTRY.format("return 1"),
    "f is not used": HEADER + "-- f\nlocal function f() return 1 end\n" + ENTRY.format("return 1"),
    "does not use its parameter b": HEADER + "-- f\nlocal function f(a, b) return a end\n" + ENTRY.format("return f(1, 2)"),
    "y is not used": HEADER + ENTRY.format("local y = 1 return 2"),
    "f has no comment": HEADER + "local ONE = 1\nlocal function f() return ONE end\n" + ENTRY.format("return f()"),
    "has no KEYS": HEADER + "-- An entry.\n-- Reply\nfunction entry.go() return 1 end\n",
    "nested 5 deep": HEADER + ENTRY.format("if 1 then if 2 then if 3 then if 4 then if 5 then return 1 end end end end end"),
    "has 52 lines": HEADER + ENTRY.format("\n" * 50 + " return 1\n"),
    "does not return inside a loop": HEADER
    + "-- f\nlocal function f(n) for i = 1, n do return i end end\n"
    + ENTRY.format("local x = f(3) return x"),
    "calls itself": HEADER + "-- f\nlocal function f(n) local x = f(n) return x end\n" + ENTRY.format("local x = f(3) return x"),
    "is called by a statement of its own": HEADER
    + "-- f\nlocal function f(n) n = n + 1 return n end\n"
    + ENTRY.format("return 1 + f(3)"),
    "uses n more than once": HEADER + "-- f\nlocal function f(n) return n + n end\n" + ENTRY.format("return 1 + f(#keys)"),
    "has no field c": HEADER + "-- P\nlocal P = record {also = {'a'}}\n" + ENTRY.format("local p = P.new() return p.c"),
    "only its fields are values": HEADER + "-- P\nlocal P = record {also = {'a'}}\n" + ENTRY.format("local p = P.new() return {p}"),
    "the format has 2 values": HEADER + "-- P\nlocal P = record {format = '<dd', 'a'}\n" + ENTRY.format("local p = P.read('') return p.a"),
    "a literal in capitals": HEADER + ENTRY.format("return redis.call('get', keys[1])"),
    "the parameters of an entry": HEADER + "-- KEYS Reply\nfunction entry.go(a, b) return a end\n",
    "begins with a comment": "\n" + ENTRY.format("return 1"),
    "constant is written in capitals": HEADER + "local one = 1\n" + ENTRY.format("return one"),
    "what follows is never reached": HEADER + ENTRY.format("do return 1 local x = 2 end"),
    "stands at the top level": HEADER + ENTRY.format("local f = function() return 1 end return f()"),
    "string has no explode": HEADER + ENTRY.format("return string.explode('a')"),
    "several results": HEADER
    + "-- f\nlocal function f(a, b)\n  a = a or 1\n  return a, b\nend\n"
    + ENTRY.format("local x, y = f(string.match(keys[1], '(.)(.)')) return {x, y}"),
    "may have several results": HEADER
    + "-- f\nlocal function f(a, b) return a .. b end\n"
    + ENTRY.format("return 'x' .. f(string.match(keys[1], '(.)(.)'))"),
    "is evaluated before": HEADER
    + "-- f\nlocal function f(a, b) return b .. a end\n"
    + ENTRY.format("return 'x' .. f(redis.call('INCR', keys[1]), redis.call('INCR', keys[2]))"),
    "is always evaluated": HEADER
    + "-- f\nlocal function f(a, b) return a and b end\n"
    + ENTRY.format("return 1 + f(keys[2], redis.call('INCR', keys[1]))"),
    "a record is returned on every path": HEADER
    + "-- P\nlocal P = record {also = {'a'}}\n"
    + "-- f\nlocal function f(n)\n  local p = P.new({a = 1})\n  if n then return p end\nend\n"
    + ENTRY.format("local p = f(keys[1]) return p.a"),
    "is returned twice": HEADER
    + "-- P\nlocal P = record {also = {'a'}}\n-- f\nlocal function f()\n  local p = P.new({a = 1})\n  return p, p\nend\n"
    + ENTRY.format("local p, q = f() return p.a + q.a"),
    "stands inside a loop": HEADER + "-- f\nlocal function f() break end\n" + ENTRY.format("while keys[1] do f() end return 1"),
    "a comment ends with its line": HEADER + "--[[ a\nb ]]\n" + ENTRY.format("return 1"),
    "has 8 bytes, not 9": HEADER
    + "-- P\nlocal P = record {format = '<d', size = 9, 'a'}\n"
    + ENTRY.format("local p = P.read(keys[1]) return P.size + p.a"),
    "ONE is not constant": HEADER + "local ONE = 2 ^ 2000\n" + ENTRY.format("return ONE"),
}  # fmt: skip


def library_of(text, folder):
    path = Path(folder) / "Lua"
    path.mkdir(exist_ok=True)
    (path / "sample.lua").write_text(text)
    return Library(path)


def flat(library):
    return "\n".join(block(Flattener(library).entry(library.entries["go"]))) + "\n"


class Redis:
    def __init__(self, path):
        self.connection = socket.socket(socket.AF_UNIX)
        self.connection.connect(path)
        self.input = self.connection.makefile("rb")

    def send(self, *words):
        words = [word if isinstance(word, bytes) else str(word).encode() for word in words]
        self.connection.sendall(b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(w), w) for w in words))
        return self.reply()

    def reply(self):
        line = self.input.readline()[:-2]
        kind, rest = line[:1], line[1:]
        if kind == b"$":
            return None if rest == b"-1" else self.input.read(int(rest) + 2)[:-2]
        if kind == b"*":
            return None if rest == b"-1" else [self.reply() for _ in range(int(rest))]
        if kind == b"-":
            raise RuntimeError(rest.decode())
        return rest


def main():
    redis, failures = Redis(sys.argv[1]), 0
    with tempfile.TemporaryDirectory() as folder:
        for name, source in SAMPLES.items():
            text = flat(library_of(source, folder))
            for arguments in ARGUMENTS:
                try:
                    plain = redis.send("EVAL", PRELUDE + source + ENDING, 1, "key", *arguments)
                    short = redis.send("EVAL", text, 1, "key", *arguments)
                except RuntimeError as error:
                    plain, short = "no error", str(error)
                if plain != short:
                    failures += 1
                    print(f"{name}: as functions {plain}, as a flat text {short}, with {arguments}:\n{text}")
                    break
        for message, source in BROKEN.items():
            try:
                library = library_of(source, folder)
                found = Checker(library).run()
                flat(library)
            except NotationError as error:
                found = [str(error)]
            if not any(message in finding for finding in found):
                failures += 1
                print(f"expected a finding with {message!r}, found {found}")
        sound = Checker(library_of(HEADER + ENTRY.format("return 1"), folder)).run()
        if sound:
            failures += 1
            print(f"expected no finding, found {sound}")
    print(f"    {len(SAMPLES)} samples, {len(BROKEN)} broken rules, {failures} failures")
    return 1 if failures else 0


sys.exit(main())
