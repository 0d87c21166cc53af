// The interpreters of Lua that all servers share.

import RedisLua
import Synchronization

/// An interpreter of Lua with the scripts that it has compiled.
///
/// It keeps nothing that a script does, so it belongs to no server: a run takes any that is idle.
///
/// `@unchecked Sendable` is right because the pool gives an interpreter to one run at a time.
final class Interpreter: @unchecked Sendable {
    private static let idle = Mutex<[Interpreter]>([])

    let lua: OpaquePointer
    /// The compiled scripts by their SHA-1.
    private var references: [Bytes: Int32] = [:]

    private init() {
        guard let lua = redis_lua_open({ runCommand($0, $1, $2, $3) }) else { fatalError("no memory for Lua") }
        self.lua = lua
        redis_lua_set_number_format(lua) { formatNumber($0, $1, $2, $3) }
    }

    deinit { redis_lua_close(lua) }

    /// Calls a function with an interpreter that nothing else uses meanwhile.
    static func with<Result>(_ body: (Interpreter) -> Result) -> Result {
        let interpreter = idle.withLock { $0.popLast() } ?? Interpreter()
        defer {
            redis_lua_clear(interpreter.lua)
            idle.withLock { $0.append(interpreter) }
        }
        return body(interpreter)
    }

    /// Returns the reference of a script, or fails with the message of the compiler.
    func compile(_ text: Bytes, sha: Bytes) throws(RedisError) -> Int32 {
        if let reference = references[sha] { return reference }
        let reference = text.withLuaBytes { redis_lua_compile(lua, $0) }
        guard reference >= 0 else {
            let message = Bytes(redis_lua_top_string(lua))
            throw RedisError("ERR Error compiling script (new function): " + message)
        }
        references[sha] = reference
        return reference
    }
}

extension Bytes {
    /// A copy of a byte string of the interpreter.
    init(_ bytes: redis_lua_bytes) {
        self.init(copying: UnsafeRawBufferPointer(start: bytes.bytes, count: bytes.length))
    }

    /// Calls a function with these bytes in place.
    func withLuaBytes<Result>(_ body: (redis_lua_bytes) -> Result) -> Result {
        array.withUnsafeBytes {
            body(redis_lua_bytes(bytes: $0.baseAddress?.assumingMemoryBound(to: CChar.self), length: $0.count))
        }
    }

    /// Calls a function with several byte strings, which are copied one behind the other.
    static func withLuaBytes<Result>(
        of list: ArraySlice<Bytes>, _ body: (UnsafeBufferPointer<redis_lua_bytes>) -> Result
    ) -> Result {
        let memory = list.flatMap(\.array)
        return memory.withUnsafeBytes { memory in
            var start = memory.baseAddress?.assumingMemoryBound(to: CChar.self)
            let pieces = list.map { bytes in
                let piece = redis_lua_bytes(bytes: start, length: bytes.count)
                start = start?.advanced(by: bytes.count)
                return piece
            }
            return pieces.withUnsafeBufferPointer { body($0) }
        }
    }
}

/// Runs a command for redis.call.
private func runCommand(
    _ context: UnsafeMutableRawPointer?, _ lua: OpaquePointer?, _ count: Int32,
    _ arguments: UnsafePointer<redis_lua_bytes>?
) -> Int32 {
    guard let context, let lua, let arguments else { return 0 }
    let words = UnsafeBufferPointer(start: arguments, count: Int(count)).map { Bytes($0) }
    // The server is where `evaluate` waits for the script, and nothing else uses it meanwhile.
    let server = context.assumingMemoryBound(to: SimulatedRedis.self)
    let reply = server.pointee.processInScript(words)
    push(reply, lua)
    return reply.isError ? 1 : 0
}

/// Writes a number that is an argument of redis.call.
private func formatNumber(
    _ context: UnsafeMutableRawPointer?, _ number: Double, _ buffer: UnsafeMutablePointer<CChar>?, _ size: Int
) -> Int {
    guard let context, let buffer else { return 0 }
    let server = context.assumingMemoryBound(to: SimulatedRedis.self)
    if server.pointee.settings.numberFormat == .seventeenDigits {
        return redis_lua_format_number(number, buffer, size)
    }
    let text = NumberFormat.shortest.argument(number)
    for (index, byte) in text.array.enumerated() { buffer[index] = CChar(bitPattern: byte) }
    return text.count
}

/// Makes a value of Lua of a reply.
private func push(_ reply: Reply, _ lua: OpaquePointer) {
    switch reply {
    case .status(let text): text.withLuaBytes { redis_lua_push_status(lua, $0) }
    case .error(let text): text.withLuaBytes { redis_lua_push_error(lua, $0) }
    case .integer(let number): redis_lua_push_number(lua, Double(number))
    case .bulk(let bytes): bytes.withLuaBytes { redis_lua_push_bytes(lua, $0) }
    case .null, .nullArray: redis_lua_push_false(lua)
    case .array(let elements):
        redis_lua_push_array(lua, Int32(elements.count))
        for (index, element) in elements.enumerated() {
            push(element, lua)
            redis_lua_set_element(lua, Int32(index + 1))
        }
    }
}
