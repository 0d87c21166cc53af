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

from lua_notation.broken_rules import BROKEN, ENTRY, HEADER  # noqa: E402
from lua_notation.check import Checker  # noqa: E402
from lua_notation.flatten import Flattener  # noqa: E402
from lua_notation.library import Library  # noqa: E402
from lua_notation.printer import block  # noqa: E402
from lua_notation.sample_calls import CALLS  # noqa: E402
from lua_notation.sample_values import VALUES  # noqa: E402
from lua_notation.tree import NotationError  # noqa: E402

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

SAMPLES = CALLS | VALUES
# Each sample runs with each of these.
ARGUMENTS = [["3", "1"], ["1", "5"], ["2", "2"], ["0", "9"]]


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
