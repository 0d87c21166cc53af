// The commands: names, numbers of arguments, keys, and how they run.

/// A command.
struct Command: Sendable {
    /// The properties of a command.
    struct Traits: OptionSet {
        let rawValue: Int
        /// It may change the keyspace.
        static let writes = Traits(rawValue: 1)
        /// It is refused when there is no memory.
        static let needsMemory = Traits(rawValue: 2)
        /// Scripts cannot run it.
        static let notInScripts = Traits(rawValue: 4)
        /// It runs at once, also in a transaction.
        static let isOfTransactions = Traits(rawValue: 8)
        /// A client that waits for messages may send it.
        static let whileSubscribed = Traits(rawValue: 16)
    }

    /// Which arguments are keys.
    enum Keys {
        case none
        case first
        case all
        case allButLast
        /// The second argument is the number of keys, which follow.
        case counted
    }

    typealias Run = @Sendable (inout SimulatedRedis, [Bytes]) throws(RedisError) -> Reply?

    let name: String
    /// The number of words with the name; a negative one is the smallest number.
    let arity: Int
    let keys: Keys
    let traits: Traits
    let run: Run

    init(_ name: String, _ arity: Int, _ keys: Keys, _ traits: Traits = [], _ run: @escaping Run) {
        self.name = name
        self.arity = arity
        self.keys = keys
        self.traits = traits
        self.run = run
    }

    /// Whether the number of words is one that the command takes.
    func takes(_ count: Int) -> Bool { arity < 0 ? count >= -arity : count == arity }

    /// Returns the arguments that are keys.
    func keys(of words: [Bytes]) -> ArraySlice<Bytes> {
        switch keys {
        case .none: return []
        case .first: return words.count > 1 ? words[1...1] : []
        case .all: return words[1...]
        case .allButLast: return words.count > 2 ? words[1..<(words.count - 1)] : []
        case .counted:
            guard let count = words[2].integer, count > 0, count <= words.count - 3 else { return [] }
            return words[3..<(3 + Int(count))]
        }
    }

    static let all: [Bytes: Command] = {
        let lists = [
            keyCommands, stringCommands, hashCommands, listCommands, setCommands, sortedSetCommands, rangeCommands,
            scriptCommands, serverCommands, channelCommands, transactionCommands, clusterCommands,
        ]
        return Dictionary(uniqueKeysWithValues: lists.joined().map { (Bytes($0.name), $0) })
    }()

    static func named(_ name: Bytes) -> Command? { all[name] ?? all[name.uppercased] }
}

extension SimulatedRedis {
    /// Runs a command of a client.
    mutating func process(_ name: Bytes, _ words: [Bytes]) -> Reply? {
        guard let command = Command.named(name) else { return refuse(Self.unknownCommand(words)) }
        guard command.takes(words.count) else { return refuse(.wrongArity(command.name)) }
        if let caller, clients[caller]?.isSubscribed == true, !command.traits.contains(.whileSubscribed) {
            return .error(
                Bytes(
                    "ERR Can't execute '\(command.name.lowercased())': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / "
                        + "QUIT / RESET are allowed in this context"))
        }
        do throws(RedisError) {
            try checkSlots(command, words)
            if command.traits.contains(.needsMemory), isOutOfMemory { throw .noMemory }
            if command.traits.contains(.writes), replication.isReadOnly { throw .readOnly }
        } catch {
            return refuse(error)
        }
        if let caller, clients[caller]?.transaction != nil, !command.traits.contains(.isOfTransactions) {
            clients[caller]?.transaction?.commands.append(words)
            return .status("QUEUED")
        }
        return run(command, words)
    }

    /// Runs a command of a script.
    mutating func processInScript(_ words: [Bytes]) -> Reply {
        guard let command = Command.named(words[0]) else {
            return .error("ERR Unknown Redis command called from script")
        }
        guard command.takes(words.count) else {
            return .error("ERR Wrong number of args calling Redis command from script")
        }
        if command.traits.contains(.notInScripts) { return .error("ERR This Redis command is not allowed from script") }
        do throws(RedisError) {
            try checkWriteInScript(command)
            try checkSlotsInScript(command, words)
        } catch {
            return .error(error.message)
        }
        if command.traits.contains(.writes) { script?.hasWritten = true }
        return run(command, words) ?? .null
    }

    /// Redis compares the memory once, when the script begins, and refuses a script's first write only.
    private func checkWriteInScript(_ command: Command) throws(RedisError) {
        guard command.traits.contains(.writes) else { return }
        if replication.isReadOnly { throw .readOnly }
        if command.traits.contains(.needsMemory), let script, script.wasOutOfMemory, !script.hasWritten {
            throw .noMemory
        }
    }

    /// Runs a command and notes what the replicas execute.
    mutating func run(_ command: Command, _ words: [Bytes]) -> Reply? {
        let changesBefore = changes
        rewritten = nil
        defer { rewritten = nil }
        do throws(RedisError) {
            let reply = try command.run(&self, words)
            if command.traits.contains(.writes), changes != changesBefore {
                for effect in rewritten ?? [words] { noteEffect(effect) }
            }
            return reply
        } catch {
            return .error(error.message)
        }
    }

    /// Replies an error before the command runs, which also makes a transaction fail.
    private mutating func refuse(_ error: RedisError) -> Reply {
        if let caller { clients[caller]?.transaction?.isRefused = true }
        return .error(error.message)
    }

    private static func unknownCommand(_ words: [Bytes]) -> RedisError {
        var shown = Bytes([])
        for word in words.dropFirst() where shown.count < 128 {
            shown = shown + "'" + word.printed(128 - shown.count) + "' "
        }
        return RedisError("ERR unknown command '" + words[0].printed(128) + "', with args beginning with: " + shown)
    }
}
