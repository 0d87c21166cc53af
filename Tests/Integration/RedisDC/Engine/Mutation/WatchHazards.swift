// Facts of the watchers, who send a heartbeat when other sessions expire.
import Hiredis
import TestSupport

@testable import RedisDCTestSupport

extension Hazard {
    static let watchers: [Hazard] = [
        Hazard(
            testDescription: "a watcher is asked to send a heartbeat when a session with a shorter TTL expires",
            safeguard: "wait = expires and", replacement: "wait = false and"
        ) { nodes, redis in
            let (short, watcher) = (try await nodes(), try await nodes())
            var asked: [Int] = []
            for _ in 0..<3 {
                try await short.heartbeat(ttl: .seconds(19))
                // For as long as the session lives.
                asked.append(try await watcher.heartbeat())
            }
            try await short.heartbeat(ttl: .seconds(21))
            asked.append(try await watcher.heartbeat())
            return asked.last == 0 && asked.dropLast().allSatisfy { (1...19_000_000).contains($0) }
        },
        Hazard(
            testDescription: "three of 1,000 sessions are asked to come when another one expires",
            safeguard: "local is_watcher = #list < 3", replacement: "local is_watcher = true"
        ) { nodes, redis in
            let short = try await nodes()
            var crowd: [ForeignNode] = []
            for _ in 0..<1000 { crowd.append(try await nodes()) }
            try await short.heartbeat(ttl: .seconds(19))
            var asked = 0
            for node in crowd { if try await node.heartbeat() > 0 { asked += 1 } }
            return asked == 3
        },
        Hazard(
            testDescription: "the sessions with the longest TTLs watch",
            safeguard: "if not is_watcher and list[shortest].ttl < ttl then", replacement: "if false then"
        ) { nodes, redis in
            for _ in 0..<3 { try await nodes().heartbeat(ttl: .seconds(5)) }
            return try await nodes().heartbeat() > 0
        },
        Hazard(
            testDescription: "a watcher is called when a session begins that would end before its next heartbeat",
            safeguard: "if promise > now + ttl then", replacement: "if false then"
        ) { nodes, redis in
            let watcher = try await nodes()
            try await watcher.heartbeat()
            let message = try await redis.firstMessage(to: watcher) {
                _ = try await nodes().heartbeat(ttl: .seconds(2))
            }
            return message == "look"
        },
        Hazard(
            testDescription: "another session is called when a watcher has not come",
            safeguard: "called[#called + 1] = lasting[i]", replacement: ""
        ) { nodes, redis in
            let (short, other) = (try await nodes(), try await nodes())
            try await redis.setWatchers("gone:1:300000000")
            let message = try await redis.firstMessage(to: other) {
                _ = try await short.heartbeat(ttl: .seconds(2))
            }
            return message == "look"
        },
        Hazard(
            testDescription: "a session that leaves is no watcher",
            safeguard: "call('HSET', partition_state, 'watchers', table.concat(list, ' '))", replacement: ""
        ) { nodes, redis in
            let (leaving, staying) = (try await nodes(), try await nodes())
            _ = try await leaving.run("leave", [.string(leaving.session)])
            return try await redis.watchers() == [staying.session]
        },
        Hazard(
            testDescription: "the watchers are called to end the claims of a session that leaves",
            safeguard: "local is_calling = not is_idle or was_watcher and #others == 0",
            replacement: "local is_calling = was_watcher and #others == 0"
        ) { nodes, redis in
            let (leaving, watcher) = (try await nodes(), try await nodes())
            _ = try await leaving.request("acquire", "s", ["sf", "1", "l"])
            let message = try await redis.firstMessage(to: watcher) {
                _ = try await leaving.run("leave", [.string(leaving.session)])
            }
            let found = try await watcher.run("heartbeat", [.string(watcher.session), 60_000_000, ""])
            return message == "look" && found.contains(leaving.session)
        },
        Hazard(
            testDescription: "another session is called when the last watcher leaves",
            safeguard: "local is_calling = not is_idle or was_watcher and #others == 0",
            replacement: "local is_calling = not is_idle"
        ) { nodes, redis in
            let (leaving, other) = (try await nodes(), try await nodes())
            try await redis.setWatchers("\(leaving.session):1:60000000")
            let message = try await redis.firstMessage(to: other) {
                _ = try await leaving.run("leave", [.string(leaving.session)])
            }
            return message == "look"
        },
        Hazard(
            testDescription: "other sessions are called when a session leaves claims and there are no watchers",
            safeguard: "others[#others + 1] = lasting[i]", replacement: ""
        ) { nodes, redis in
            let (leaving, other) = (try await nodes(), try await nodes())
            _ = try await leaving.request("acquire", "s", ["sf", "1", "l"])
            try await redis.setWatchers("")
            let message = try await redis.firstMessage(to: other) {
                _ = try await leaving.run("leave", [.string(leaving.session)])
            }
            return message == "look"
        },
        Hazard(
            testDescription: "an expired session that was hidden when the clock was ahead is handed out",
            safeguard: "'-inf',", replacement: "'+inf',"
        ) { nodes, redis in
            let (dead, living) = (try await nodes(), try await nodes())
            try await dead.expire()
            _ = try await redis.send("ZADD", "rdc:{default:0}:sessions", .integer(-(1 << 52)), .string(dead.session))
            return try await living.run("heartbeat", [.string(living.session), 60_000_000, ""]).contains(dead.session)
        },
        Hazard(
            testDescription: "a promise from a time when the clock was ahead is not believed",
            safeguard: " or promise > now + other_ttl then", replacement: " then"
        ) { nodes, redis in
            let node = try await nodes()
            let later = 1 << 52
            try await redis.setWatchers((0..<3).map { "gone\($0):\(later):300000000" }.joined(separator: " "))
            try await node.heartbeat()
            return try await redis.watchers() == [node.session]
        },
    ]
}

extension RedisClient {
    fileprivate func setWatchers(_ list: String) async throws {
        _ = try await send("HSET", "rdc:{default:0}:book", "watchers", .string(list))
    }

    /// The sessions that watch.
    fileprivate func watchers() async throws -> [String] {
        let list = try await send("HGET", "rdc:{default:0}:book", "watchers").string ?? ""
        return list.split(separator: " ").map { String($0.prefix { $0 != ":" }) }
    }
}
