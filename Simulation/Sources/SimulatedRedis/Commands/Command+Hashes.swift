// Commands on hashes.

extension Command {
    static let hashCommands = [
        Command("HSET", -4, .first, [.writes, .needsMemory]) { server, words throws(RedisError) in
            guard words.count % 2 == 0 else { throw .wrongArity("HSET") }
            let added = try server.update(words[1], as: RedisHash.self, isCreated: true) { hash in
                var added: Int64 = 0
                for index in stride(from: 2, to: words.count, by: 2) where hash.set(words[index], words[index + 1]) {
                    added += 1
                }
                return added
            }
            server.changes += words.count / 2 - 1
            return .integer(added ?? 0)
        },
        Command("HSETNX", 4, .first, [.writes, .needsMemory]) { server, words throws(RedisError) in
            let isNew = try server.update(words[1], as: RedisHash.self, isCreated: true) { hash in
                hash[words[2]] == nil && hash.set(words[2], words[3])
            }
            if isNew == true { server.changes += 1 }
            return .flag(isNew == true)
        },
        Command("HGET", 3, .first) { server, words throws(RedisError) in
            try server.read(words[1], as: RedisHash.self)?[words[2]].map { .bulk($0) } ?? .null
        },
        Command("HMGET", -3, .first) { server, words throws(RedisError) in
            let hash = try server.read(words[1], as: RedisHash.self)
            return .array(words.dropFirst(2).map { field in hash?[field].map { .bulk($0) } ?? .null })
        },
        Command("HDEL", -3, .first, .writes) { server, words throws(RedisError) in
            let removed = try server.update(words[1], as: RedisHash.self) { hash in
                words.dropFirst(2).count { hash.remove($0) }
            }
            server.changes += removed ?? 0
            return .integer(Int64(removed ?? 0))
        },
        Command("HLEN", 2, .first) { server, words throws(RedisError) in
            .integer(Int64(try server.read(words[1], as: RedisHash.self)?.count ?? 0))
        },
        Command("HEXISTS", 3, .first) { server, words throws(RedisError) in
            .flag(try server.read(words[1], as: RedisHash.self)?[words[2]] != nil)
        },
        Command("HSTRLEN", 3, .first) { server, words throws(RedisError) in
            .integer(Int64(try server.read(words[1], as: RedisHash.self)?[words[2]]?.count ?? 0))
        },
        Command("HGETALL", 2, .first) { server, words throws(RedisError) in
            let hash = try server.read(words[1], as: RedisHash.self)
            return .array(hash?.ordered.flatMap { [.bulk($0.field), .bulk($0.value)] } ?? [])
        },
        Command("HKEYS", 2, .first) { server, words throws(RedisError) in
            .bulks(try server.read(words[1], as: RedisHash.self)?.ordered.map(\.field) ?? [])
        },
        Command("HVALS", 2, .first) { server, words throws(RedisError) in
            .bulks(try server.read(words[1], as: RedisHash.self)?.ordered.map(\.value) ?? [])
        },
        Command("HINCRBY", 4, .first, [.writes, .needsMemory]) { server, words throws(RedisError) in
            let number = try words[3].requireInteger()
            let sum = try server.update(words[1], as: RedisHash.self, isCreated: true) { hash throws(RedisError) in
                let old = try hash[words[2]]?.requireInteger(RedisError("ERR hash value is not an integer")) ?? 0
                let (sum, isTooLarge) = old.addingReportingOverflow(number)
                if isTooLarge { throw .overflow }
                hash.set(words[2], Bytes(sum))
                return sum
            }
            server.changes += 1
            return .integer(sum ?? 0)
        },
        Command("HSCAN", -3, .first) { server, words throws(RedisError) in
            _ = try Scan(cursor: words[2], options: [])
            guard let hash = try server.read(words[1], as: RedisHash.self) else {
                return .array([.bulk("0"), .array([])])
            }
            let (fields, cursor) = try Scan(cursor: words[2], options: words.dropFirst(3)).page(of: hash.fields.keys)
            return .array([.bulk(cursor), .bulks(fields.flatMap { [$0, hash[$0] ?? Bytes([])] })])
        },
    ]
}
