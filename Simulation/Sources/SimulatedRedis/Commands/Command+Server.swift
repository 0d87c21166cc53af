// Commands about the server and the connection.

extension Command {
    static let serverCommands = [
        Command("PING", -1, .none, .whileSubscribed) { server, words throws(RedisError) in
            guard words.count <= 2 else { throw .wrongArity("PING") }
            return words.count == 2 ? .bulk(words[1]) : .status("PONG")
        },
        Command("ECHO", 2, .none) { _, words throws(RedisError) in .bulk(words[1]) },
        Command("TIME", 1, .none) { server, _ throws(RedisError) in
            .bulks([Bytes(server.now / 1_000_000), Bytes(server.now % 1_000_000)])
        },
        Command("SELECT", 2, .none) { _, words throws(RedisError) in
            guard try words[1].requireInteger() == 0 else { throw RedisError("ERR DB index is out of range") }
            return .ok
        },
        Command("INFO", -1, .none) { server, _ throws(RedisError) in .bulk(Bytes(server.information)) },
        Command("ROLE", 1, .none, .notInScripts) { server, _ throws(RedisError) in
            .array([
                .bulk(server.replication.role == .master ? "master" : "slave"), .integer(server.offset), .array([]),
            ])
        },
        Command("CLIENT", -2, .none, .notInScripts) { server, words throws(RedisError) in
            try server.client(words)
        },
        Command("WAIT", 3, .none, .notInScripts) { server, words throws(RedisError) in
            try server.waitForReplicas(words)
        },
    ]
}

extension SimulatedRedis {
    fileprivate var information: String {
        """
        # Server\r
        redis_version:7.0.15\r
        redis_mode:\(cluster == nil ? "standalone" : "cluster")\r
        \r
        # Memory\r
        used_memory:\(estimatedSize)\r
        maxmemory:\(settings.maxMemory ?? 0)\r
        \r
        # Replication\r
        role:\(replication.role == .master ? "master" : "slave")\r
        master_repl_offset:\(offset)\r

        """
    }

    fileprivate mutating func client(_ words: [Bytes]) throws(RedisError) -> Reply {
        if words[1].isWord("ID"), words.count == 2 { return .integer(caller.map { Int64($0.number) } ?? 0) }
        if words[1].isWord("SETNAME"), words.count == 3 {
            if let caller { clients[caller]?.name = words[2] }
            return .ok
        }
        if words[1].isWord("GETNAME"), words.count == 2 {
            return caller.flatMap { clients[$0]?.name }.map { .bulk($0) } ?? .null
        }
        if words[1].isWord("UNBLOCK"), words.count == 3 || words.count == 4 {
            let raisesError = words.count == 4 && words[3].isWord("ERROR")
            guard words.count == 3 || raisesError || words[3].isWord("TIMEOUT") else {
                throw RedisError("ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR")
            }
            let number = try words[2].requireInteger()
            return .flag(unblock(ClientID(number: Int(number)), raisesError: raisesError))
        }
        throw Command.unknownSubcommand(words)
    }
}
