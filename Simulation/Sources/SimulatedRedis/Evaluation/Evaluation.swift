// Runs a script on a server, and makes a reply of what it returns.

import RedisLua

extension SimulatedRedis {
    /// Runs a script of this server.
    mutating func evaluate(
        _ text: Bytes, sha: Bytes, keys: ArraySlice<Bytes>, arguments: ArraySlice<Bytes>
    ) -> Reply {
        script = RunningScript(wasOutOfMemory: isOutOfMemory)
        if cluster != nil { script?.slot = keys.first.map { Self.slot(of: $0) } }
        defer { script = nil }
        return Interpreter.with { interpreter in
            do throws(RedisError) {
                let reference = try interpreter.compile(text, sha: sha)
                let outcome = run(reference, interpreter.lua, keys, arguments)
                return outcome == REDIS_LUA_RETURNED
                    ? Self.reply(interpreter.lua) : Self.raisedError(interpreter.lua, sha: sha)
            } catch {
                return .error(error.message)
            }
        }
    }

    private mutating func run(
        _ reference: Int32, _ lua: OpaquePointer, _ keys: ArraySlice<Bytes>, _ arguments: ArraySlice<Bytes>
    ) -> redis_lua_outcome {
        Bytes.withLuaBytes(of: keys) { keys in
            Bytes.withLuaBytes(of: arguments) { arguments in
                // The script's commands change this server where it is.
                withUnsafeMutablePointer(to: &self) { server in
                    redis_lua_run(
                        lua, reference, server, Int32(keys.count), keys.baseAddress, Int32(arguments.count),
                        arguments.baseAddress)
                }
            }
        }
    }

    /// The reply of an error that ended a script.
    private static func raisedError(_ lua: OpaquePointer, sha: Bytes) -> Reply {
        let error = redis_lua_raised(lua)
        var text = Bytes(error.message) + " script: " + sha
        if error.source.length > 0 {
            text = text + ", on " + Bytes(error.source) + ":" + Bytes(error.line) + "."
        }
        return .error(oneLine(text))
    }

    /// Makes a reply of the value on top of the stack.
    private static func reply(_ lua: OpaquePointer) -> Reply {
        switch redis_lua_top(lua) {
        case REDIS_LUA_STRING: .bulk(Bytes(redis_lua_top_string(lua)))
        case REDIS_LUA_NUMBER: .integer(truncated(redis_lua_top_number(lua)))
        case REDIS_LUA_TRUE: .integer(1)
        case REDIS_LUA_TABLE: tableReply(lua)
        default: .null
        }
    }

    private static func tableReply(_ lua: OpaquePointer) -> Reply {
        guard redis_lua_has_room(lua) == 1 else { return .error("ERR reached lua stack limit") }
        if let text = stringField("err", lua) { return .error(oneLine(text)) }
        if let text = stringField("ok", lua) { return .status(oneLine(text)) }
        var elements: [Reply] = []
        while true {
            redis_lua_push_element(lua, Int32(elements.count + 1))
            defer { redis_lua_pop(lua) }
            // An array ends before its first nil.
            if redis_lua_top(lua) == REDIS_LUA_NIL { return .array(elements) }
            elements.append(reply(lua))
        }
    }

    private static func stringField(_ name: String, _ lua: OpaquePointer) -> Bytes? {
        redis_lua_push_field(lua, name)
        defer { redis_lua_pop(lua) }
        return redis_lua_top(lua) == REDIS_LUA_STRING ? Bytes(redis_lua_top_string(lua)) : nil
    }

    /// A number without its fraction. One that no integer can hold becomes the smallest integer, as in C on x86.
    private static func truncated(_ number: Double) -> Int64 {
        number > -9.3e18 && number < 9.223372036854775e18 ? Int64(number) : .min
    }

    private static func oneLine(_ text: Bytes) -> Bytes {
        Bytes(text.array.map { $0 == UInt8(ascii: "\r") || $0 == UInt8(ascii: "\n") ? UInt8(ascii: " ") : $0 })
    }
}
