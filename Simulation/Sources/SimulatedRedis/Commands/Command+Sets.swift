// Commands on sets.

extension Command {
    static let setCommands = [
        Command("SADD", -3, .first, [.writes, .needsMemory]) { server, words throws(RedisError) in
            let added = try server.update(words[1], as: RedisSet.self, isCreated: true) { set in
                words.dropFirst(2).count { set.insert($0) }
            }
            server.changes += added ?? 0
            return .integer(Int64(added ?? 0))
        },
        Command("SREM", -3, .first, .writes) { server, words throws(RedisError) in
            let removed = try server.update(words[1], as: RedisSet.self) { set in
                words.dropFirst(2).count { set.remove($0) }
            }
            server.changes += removed ?? 0
            return .integer(Int64(removed ?? 0))
        },
        Command("SCARD", 2, .first) { server, words throws(RedisError) in
            .integer(Int64(try server.read(words[1], as: RedisSet.self)?.count ?? 0))
        },
        Command("SISMEMBER", 3, .first) { server, words throws(RedisError) in
            .flag(try server.read(words[1], as: RedisSet.self)?.contains(words[2]) ?? false)
        },
        Command("SMEMBERS", 2, .first) { server, words throws(RedisError) in
            .bulks(try server.read(words[1], as: RedisSet.self)?.ordered ?? [])
        },
    ]
}
