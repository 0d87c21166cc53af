// Scripts have the same values, errors and limits on a real server and on a simulated one.

import SimulatedRedis
import Testing

@Suite("The language of scripts, compared with a real server") struct ScriptLanguageTests {
    private static let scripts = [
        // Values of Lua as replies.
        "return 1.9", "return -1.9", "return 1e30", "return -1e30", "return 0/0", "return 'text'", "return true",
        "return false", "return nil", "return", "return {1, nil, 3}", "return {true, false, 1}",
        "return {{}, {1, {2}}, {ok = 'fine'}, {err = 'E one'}}", "return {a = 1}", "return {ok = 'fine'}",
        "return {err = 'RDC two words'}", "return {err = '-x y'}", "return string.rep", "return function() end",
        "return redis.status_reply('x y')", "return redis.error_reply('RDC x y')",
        "return redis.error_reply('RDC x\\r\\ny')", "return {'a' .. 1e15, 'a' .. 123456789012345, 'a' .. 0.1, 1 .. ''}",
        // Replies of commands as values.
        "return {type(redis.call('GET', 'none')), type(redis.call('SET', 's', 'x')), redis.call('SET', 's', 'x').ok}",
        "return {type(redis.call('LLEN', 'l')), type(redis.call('HMGET', 'h', 'a')[1]), #redis.call('LRANGE', 'l', 0, -1)}",
        "return redis.call('HMGET', 'h', 'a', 'b')", "return redis.call('LPOP', 'none', 2)",
        "return redis.call('ZSCORE', 'z', 'm')", "return redis.call('ZRANGE', 'z', 0, -1, 'WITHSCORES')",
        // Numbers as arguments.
        "return {redis.call('ECHO', 12), redis.call('ECHO', -3), redis.call('ECHO', 1/0), redis.call('ECHO', 1.5)}",
        "return {redis.call('ECHO', 0.1), redis.call('ECHO', 1e17), redis.call('ECHO', -1.5e300)}",
        "return {redis.call('ECHO', 12345678901234567890), redis.call('ECHO', 1e15 + 0.5), redis.call('ECHO', 2^53)}",
        // Errors of commands.
        "return redis.call('HGET', 's', 'a')", "return redis.pcall('HGET', 's', 'a')", "return redis.call('NOSUCH')",
        "return redis.call('GET')", "return redis.call()", "return redis.pcall()", "return redis.call('GET', {})",
        "return redis.pcall('GET', nil)", "return redis.call('SUBSCRIBE', 'c')", "return redis.call('EVAL', '1', 0)",
        "return redis.pcall('GET').err", "local r = redis.pcall('HGET', 's', 'a') return r",
        "return redis.error_reply(1)",
        "redis.call('SET', 'kept', '1') redis.call('HGET', 's', 'a') redis.call('SET', 'never', '1')",
        "return {pcall(redis.call, 'GET')}", "local is, e = pcall(redis.call, 'HGET', 's', 'a') return e.err",
        // Errors of Lua.
        "return 1 + {}", "local a\nreturn a.b", "return missing", "missing = 1", "string.sub = 1", "redis.call = nil",
        "error('x')", "error('x', 0)", "error({err = 'MY x'})", "error()", "ret urn", "return #nil", "return print",
        "local t = {} t[nil] = 1", "return string.sub()", "return ('x'):rep(-1)", "return math.floor('x')",
        "return _G == nil",
        "return tonumber('0x10')", "return {pcall(error, 'plain')}", "return select('#', 1, 2)",
        "return {unpack({1, 2})}",
        "local t = {} for k in string.gmatch('a b', '%a') do t[#t + 1] = k end return t",
        "return string.format('%5.1f|%d', 1.25, 3.7)",
        "return {string.find('a.b', '.', 1, true)}", "return table.concat({1, 2, 'x'}, ',')",
        "local t = {3, 1, 2} table.sort(t) return t", "return tostring(1e15) .. tostring(2^31) .. tostring(-0.5)",
        // Packed numbers.
        "return struct.pack('<BHI4I6d', 1, 2, 3, 4, 5.5)", "return struct.pack('>I4I8hi', 1, 2, -3, -4)",
        "return struct.pack('<Hc0c3', 2, 'ab', 'abcdef')", "return {struct.unpack('<BHI6d', ('x'):rep(17))}",
        "return {struct.unpack('<Hc0c1', '\\2\\0abc')}",
        "return {struct.unpack('>hHbB', '\\255\\254\\255\\254\\255\\255')}",
        "return struct.unpack('<d', 'abc')", "return struct.pack('<q', 1)", "return struct.pack('<d', 'x')",
        "return struct.pack('c5', 'x')", "return {struct.unpack('<I4', 'abcdefgh', 3)}",
        "return struct.unpack('<I4', 'abcd', 9)",
        "return struct.pack('<d')", "return struct.pack('<I4', -1)", "return struct.pack('<I6', 2^40 + 0.9)",
        "return {struct.unpack('<l', ('\\255'):rep(8))}", "return struct.unpack('<c0', 'x')",
        "return struct.pack('< I4 B', 1, 2)",
    ]

    @Test("scripts return the same values and errors", .timeLimit(.minutes(1)))
    func language() throws {
        try RealServer.with { server in
            let dialect = try Dialect(of: server)
            // The texts of errors are those of 7.0.
            guard dialect.version == 700 else { return }
            var simulated = SimulatedRedis()
            let preparation: [[Bytes]] = [
                ["SET", "s", "x"], ["RPUSH", "l", "a", "b"], ["HSET", "h", "a", "1"],
                ["ZADD", "z", "1.1", "m", "inf", "n"],
            ]
            let commands = preparation + Self.scripts.map { ["EVAL", Bytes($0), "0"] }
            let replies = try server.connection.send(pipeline: commands)
            for (command, real) in zip(commands, replies) {
                let reply = simulated.execute(command) ?? .null
                #expect(real == reply, "\(command[1])")
            }
            let keys = try server.connection.send(pipeline: [["EXISTS", "kept", "never"]])
            #expect(simulated.execute("EXISTS", "kept", "never") == keys[0])
        }
    }

    @Test("the number of keys is checked", arguments: ["0", "1", "2", "3", "-1", "x", "99999999999"])
    func keys(count: String) throws {
        try RealServer.with { server in
            var simulated = SimulatedRedis()
            let command: [Bytes] = ["EVAL", "return {#KEYS, #ARGV, KEYS[1], ARGV[1]}", Bytes(count), "a", "b"]
            let real = try server.connection.send(command)
            #expect(simulated.execute(command) == real)
        }
    }

    @Test("a script cannot keep anything for a later one")
    func state() {
        var server = SimulatedRedis()
        for script in [
            "string.kept = 1", "getmetatable('').__index = nil", "setmetatable(string, {})", "kept = 1",
            "rawset(_G, 'a', 1)",
            "redis.kept = 1", "setmetatable(redis, nil)", "table.concat = nil", "math.kept = 1", "struct.pack = nil",
            "KEYS = nil", "getmetatable(string).__index = nil",
            "for k in pairs(string) do string[k] = nil end kept = 1",
        ] {
            #expect(server.execute("EVAL", Bytes(script), "0").isError, "\(script)")
        }
        #expect(server.execute("EVAL", "return ('x'):rep(2) .. #KEYS .. table.concat({1, 2})", "0") == .bulk("xx012"))
    }

    @Test(
        "what is not simulated raises an error that names it", arguments: ["cjson.encode", "cmsgpack.pack", "bit.band"])
    func notSimulated(function: String) {
        var server = SimulatedRedis()
        #expect(
            "\(server.execute("EVAL", Bytes("return \(function)(1)"), "0"))".contains("\(function) is not simulated"))
    }
}
