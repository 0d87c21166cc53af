"""Libraries that break a rule of the notation, each with words of the finding."""

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
