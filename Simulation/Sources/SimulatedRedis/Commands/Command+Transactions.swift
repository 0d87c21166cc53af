// Transactions, and commands that wait for an element of a list.

extension Command {
    static let transactionCommands = [
        Command("MULTI", 1, .none, [.notInScripts, .isOfTransactions]) { server, _ throws(RedisError) in
            guard let caller = server.caller else { throw RedisError("ERR only a client can begin a transaction") }
            guard server.clients[caller]?.transaction == nil else {
                throw RedisError("ERR MULTI calls can not be nested")
            }
            server.clients[caller]?.transaction = Client.Transaction()
            return .ok
        },
        Command("DISCARD", 1, .none, [.notInScripts, .isOfTransactions]) { server, _ throws(RedisError) in
            guard server.takeTransaction() != nil else { throw RedisError("ERR DISCARD without MULTI") }
            return .ok
        },
        Command("EXEC", 1, .none, [.notInScripts, .isOfTransactions]) { server, _ throws(RedisError) in
            guard let transaction = server.takeTransaction() else { throw RedisError("ERR EXEC without MULTI") }
            if transaction.isRefused {
                throw RedisError("EXECABORT Transaction discarded because of previous errors.")
            }
            server.isInTransaction = true
            defer { server.isInTransaction = false }
            var replies: [Reply] = []
            for words in transaction.commands {
                guard let command = Command.named(words[0]) else { continue }
                replies.append(server.run(command, words) ?? .null)
            }
            return .array(replies)
        },
        Command("BLPOP", -3, .allButLast, [.writes, .notInScripts]) { server, words throws(RedisError) in
            try server.waitForElement(words, fromEnd: false)
        },
        Command("BRPOP", -3, .allButLast, [.writes, .notInScripts]) { server, words throws(RedisError) in
            try server.waitForElement(words, fromEnd: true)
        },
    ]
}

extension SimulatedRedis {
    fileprivate mutating func takeTransaction() -> Client.Transaction? {
        guard let caller else { return nil }
        defer { clients[caller]?.transaction = nil }
        return clients[caller]?.transaction
    }

    fileprivate mutating func waitForElement(_ words: [Bytes], fromEnd: Bool) throws(RedisError) -> Reply? {
        let timeout = try words[words.count - 1].requireDouble(
            RedisError("ERR timeout is not a float or out of range"))
        if timeout < 0 { throw RedisError("ERR timeout is negative") }
        if timeout > 9e12 { throw RedisError("ERR timeout is out of range") }
        let keys = Array(words[1..<(words.count - 1)])
        for key in keys {
            if let reply = try takeElement(of: key, fromEnd: fromEnd) { return reply }
        }
        guard let caller, !isInTransaction else { return .nullArray }
        let deadline = timeout == 0 ? nil : now + Int64((timeout * 1000).rounded(.up)) * 1000
        wait(caller, for: Client.Wait(event: .element(keys: keys, fromEnd: fromEnd), deadline: deadline))
        return nil
    }

    /// Removes an element of a list, and replies it with the key.
    fileprivate mutating func takeElement(of key: Bytes, fromEnd: Bool) throws(RedisError) -> Reply? {
        let element = try update(key, as: RedisList.self) { fromEnd ? $0.popLast() : $0.popFirst() }
        guard let element = element ?? nil else { return nil }
        changes += 1
        rewritten = [[fromEnd ? "RPOP" : "LPOP", key]]
        return .bulks([key, element])
    }

    fileprivate mutating func wait(_ client: ClientID, for wait: Client.Wait) {
        clients[client]?.wait = wait
        clients.waiting.append(client)
    }

    mutating func waitForReplicas(_ words: [Bytes]) throws(RedisError) -> Reply? {
        let count = try words[1].requireInteger()
        let timeout = try words[2].requireInteger(RedisError("ERR timeout is not an integer or out of range"))
        if timeout < 0 { throw RedisError("ERR timeout is negative") }
        let current = offset
        let reached = replicas(at: current)
        guard reached < count, let caller, !isInTransaction else { return .integer(Int64(reached)) }
        let deadline = timeout == 0 ? nil : now + timeout * 1000
        wait(caller, for: Client.Wait(event: .replicas(count: Int(count), offset: current), deadline: deadline))
        return nil
    }
}

// MARK: Waiting clients

extension SimulatedRedis {
    /// Notes that elements were added to a list.
    mutating func noteElements(of key: Bytes) {
        guard !clients.waiting.isEmpty, !clients.readyKeys.contains(key) else { return }
        clients.readyKeys.append(key)
    }

    /// Gives elements to the clients that wait for them, to those first that have waited longest.
    mutating func serveWaitingClients() {
        while !clients.readyKeys.isEmpty {
            let key = clients.readyKeys.removeFirst()
            for client in clients.waiting {
                guard case .element(let keys, let fromEnd)? = clients[client]?.wait?.event, keys.contains(key) else {
                    continue
                }
                guard let reply = (try? takeElement(of: key, fromEnd: fromEnd)) ?? nil else { break }
                for effect in rewritten ?? [] { noteEffect(effect) }
                rewritten = nil
                endWait(client, with: reply)
            }
        }
        commitEffects()
    }

    /// Ends the waits whose time is over.
    mutating func endWaits() {
        let ended = clients.waiting.filter { (clients[$0]?.wait?.deadline).map { $0 <= now } ?? false }
        let inOrder = ended.enumerated().sorted {
            let one = clients[$0.element]?.wait?.deadline ?? 0
            let other = clients[$1.element]?.wait?.deadline ?? 0
            return one != other ? one < other : $0.offset < $1.offset
        }
        for (_, client) in inOrder { endWaitWithoutResult(client) }
    }

    /// Ends the wait of a client. Returns whether it has waited.
    mutating func unblock(_ client: ClientID, raisesError: Bool) -> Bool {
        guard clients[client]?.wait != nil else { return false }
        if raisesError {
            endWait(client, with: .error("UNBLOCKED client unblocked via CLIENT UNBLOCK"))
        } else {
            endWaitWithoutResult(client)
        }
        return true
    }

    private mutating func endWaitWithoutResult(_ client: ClientID) {
        switch clients[client]?.wait?.event {
        case .element?: endWait(client, with: .nullArray)
        case .replicas(_, let offset)?: endWait(client, with: .integer(Int64(replicas(at: offset))))
        case nil: break
        }
    }

    mutating func endWait(_ client: ClientID, with reply: Reply) {
        clients[client]?.wait = nil
        clients.waiting.removeAll { $0 == client }
        clients.deliver(reply, to: client)
    }
}
