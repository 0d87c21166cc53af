// Commands on lists, without those that wait.

extension Command {
    static let listCommands = [
        Command("LPUSH", -3, .first, [.writes, .needsMemory]) { server, words throws(RedisError) in
            try server.push(words[1], words.dropFirst(2)) { $0.prepend($1) }
        },
        Command("RPUSH", -3, .first, [.writes, .needsMemory]) { server, words throws(RedisError) in
            try server.push(words[1], words.dropFirst(2)) { $0.append($1) }
        },
        Command("LPOP", -2, .first, .writes) { server, words throws(RedisError) in
            try server.pop(words) { $0.popFirst() }
        },
        Command("RPOP", -2, .first, .writes) { server, words throws(RedisError) in
            try server.pop(words) { $0.popLast() }
        },
        Command("LLEN", 2, .first) { server, words throws(RedisError) in
            .integer(Int64(try server.read(words[1], as: RedisList.self)?.count ?? 0))
        },
        Command("LINDEX", 3, .first) { server, words throws(RedisError) in
            guard let list = try server.read(words[1], as: RedisList.self) else { return .null }
            let index = try words[2].requireInteger()
            let place = index < 0 ? index.addingReportingOverflow(Int64(list.count)).partialValue : index
            return place >= 0 && place < list.count ? .bulk(list[Int(place)]) : .null
        },
        Command("LRANGE", 4, .first) { server, words throws(RedisError) in
            let range = try IndexRange(words[2], words[3])
            guard let list = try server.read(words[1], as: RedisList.self) else { return .array([]) }
            let places = range.places(in: list.count)
            return .bulks(places.map { list[$0] })
        },
        Command("LSET", 4, .first, [.writes, .needsMemory]) { server, words throws(RedisError) in
            let isSet = try server.update(words[1], as: RedisList.self) { list throws(RedisError) in
                let index = try words[2].requireInteger()
                let place = index < 0 ? index.addingReportingOverflow(Int64(list.count)).partialValue : index
                guard place >= 0, place < list.count else { throw RedisError("ERR index out of range") }
                list[Int(place)] = words[3]
                return true
            }
            guard isSet != nil else { throw RedisError("ERR no such key") }
            server.changes += 1
            return .ok
        },
        Command("LTRIM", 4, .first, .writes) { server, words throws(RedisError) in
            let range = try IndexRange(words[2], words[3])
            let isTrimmed = try server.update(words[1], as: RedisList.self) { list in
                list.keep(range.places(in: list.count))
                return true
            }
            if isTrimmed != nil { server.changes += 1 }
            return .ok
        },
    ]
}

/// A range of places by its first and its last index, which count from the end if they are negative.
struct IndexRange {
    private let first: Int64
    private let last: Int64

    init(_ first: Bytes, _ last: Bytes) throws(RedisError) {
        self.first = try first.requireInteger()
        self.last = try last.requireInteger()
    }

    func places(in count: Int) -> Range<Int> {
        let count = Int64(count)
        let first = max(0, self.first < 0 ? self.first + count : self.first)
        let last = min(count - 1, self.last < 0 ? self.last + count : self.last)
        return first > last || first >= count ? 0..<0 : Int(first)..<(Int(last) + 1)
    }
}

extension SimulatedRedis {
    fileprivate mutating func push(
        _ key: Bytes, _ elements: ArraySlice<Bytes>, _ add: (inout RedisList, Bytes) -> Void
    ) throws(RedisError) -> Reply {
        let count = try update(key, as: RedisList.self, isCreated: true) { list in
            for element in elements { add(&list, element) }
            return list.count
        }
        changes += elements.count
        noteElements(of: key)
        return .integer(Int64(count ?? 0))
    }

    fileprivate mutating func pop(
        _ words: [Bytes], _ take: (inout RedisList) -> Bytes?
    ) throws(RedisError) -> Reply {
        guard words.count <= 3 else { throw .wrongArity(words[0].text) }
        guard words.count == 3 else {
            let element = try update(words[1], as: RedisList.self) { take(&$0) } ?? nil
            if element != nil { changes += 1 }
            return element.map { .bulk($0) } ?? .null
        }
        let count = try words[2].requireInteger(.notPositive)
        guard count >= 0 else { throw .notPositive }
        let elements = try update(words[1], as: RedisList.self) { list in
            var taken: [Bytes] = []
            while taken.count < count, let element = take(&list) { taken.append(element) }
            return taken
        }
        guard let elements else { return .nullArray }
        changes += elements.count
        return .bulks(elements)
    }
}
