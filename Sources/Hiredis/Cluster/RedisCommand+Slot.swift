import NIOCore

/// Where a command has its first key.
enum KeyPosition: Equatable {
    case argument(Int)
    /// Behind the number of keys, which is at this position; there is no key when the number is 0.
    case counted(Int)
    /// Behind this word.
    case after(String)
    /// It has none, and any server of a cluster can answer it.
    case anyServer
    /// It has none, and concerns the server that receives it.
    case oneServer

    /// Returns the position for a command, by its name in capitals.
    static func of(_ name: String) -> KeyPosition { exceptions[name] ?? .argument(1) }

    private static let exceptions: [String: KeyPosition] = {
        var exceptions: [String: KeyPosition] = [:]
        func add(_ position: KeyPosition, _ names: String) {
            for name in names.split(separator: " ") { exceptions[String(name)] = position }
        }
        add(.argument(2), "BITOP DEBUG MEMORY OBJECT XGROUP XINFO")
        add(.argument(3), "MIGRATE")
        add(.counted(2), "EVAL EVALSHA EVAL_RO EVALSHA_RO FCALL FCALL_RO BLMPOP BZMPOP")
        add(.counted(1), "ZUNION ZINTER ZDIFF ZINTERCARD SINTERCARD LMPOP ZMPOP")
        add(.after("STREAMS"), "XREAD XREADGROUP")
        add(.anyServer, "PING ECHO TIME PUBLISH COMMAND LOLWUT")
        add(
            .oneServer,
            """
            ACL ASKING AUTH BGREWRITEAOF BGSAVE CLIENT CLUSTER CONFIG DBSIZE DISCARD EXEC FAILOVER FLUSHALL FLUSHDB \
            FUNCTION HELLO INFO KEYS LASTSAVE LATENCY MODULE MONITOR MULTI PSUBSCRIBE PUBSUB PUNSUBSCRIBE QUIT RANDOMKEY \
            READONLY READWRITE REPLICAOF RESET ROLE SAVE SCAN SCRIPT SELECT SHUTDOWN SLAVEOF SLOWLOG SUBSCRIBE SWAPDB \
            UNSUBSCRIBE UNWATCH WAIT WAITAOF
            """)
        return exceptions
    }()
}

extension RedisCommand {
    /// The server of a cluster that a command is for.
    enum Destination: Hashable {
        case slot(Int)
        case anyServer
        case oneServer
    }

    /// The destination, by the first key.
    var destination: Destination {
        switch KeyPosition.of(name) {
        case .argument(let index): return destination(at: index)
        case .counted(let index):
            guard index < arguments.count else { return .anyServer }
            if arguments[index].decimal == 0 { return .anyServer }
            return destination(at: index + 1)
        case .after(let word):
            let index = arguments.firstIndex { $0.isWord(word) }
            return index.map { destination(at: $0 + 1) } ?? .anyServer
        case .anyServer: return .anyServer
        case .oneServer: return .oneServer
        }
    }

    /// Without the argument the command is wrong, which any server says.
    private func destination(at index: Int) -> Destination {
        index < arguments.count ? .slot(arguments[index].slot) : .anyServer
    }
}

extension RedisArgument {
    fileprivate var slot: Int {
        switch self {
        case .string(let text): HashSlot.of(text)
        case .bytes(let bytes): HashSlot.of(bytes)
        case .integer(let value): HashSlot.of("\(value)")
        case .buffer(let buffer): HashSlot.of(buffer.readableBytesView)
        }
    }

    fileprivate var decimal: Int? {
        switch self {
        case .integer(let value): value
        case .string(let text): Int(text)
        case .bytes(let bytes): Int(String(decoding: bytes, as: UTF8.self))
        case .buffer(let buffer): Int(String(decoding: buffer.readableBytesView, as: UTF8.self))
        }
    }

    fileprivate func isWord(_ word: String) -> Bool {
        if case .string(let text) = self { text.uppercased() == word } else { false }
    }
}
