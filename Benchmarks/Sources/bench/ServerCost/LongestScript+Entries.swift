// The scripts that the longest uses run, compared with those that the modules have.
import Foundation

extension LongestScript {
    /// The scripts that a use runs at their largest sizes, by module and name.
    var entries: [String] {
        switch self {
        case .barrier: ["RedisDC.arrive", "RedisDC.recheckMeeting", "RedisDC.releaseParty"]
        case .semaphore:
            ["RedisDC.signal", "RedisDC.recheck", "RedisDC.confirm", "RedisDC.destroy", "RedisDC.clear"]
        case .readWriteLock: ["RedisDC.acquire", "RedisDC.release"]
        case .condition: ["RedisDC.releaseMutex"]
        case .latch: ["RedisDC.waitForLatch", "RedisDC.countDown"]
        case .session: ["RedisDC.join", "RedisDC.leave", "RedisDC.heartbeat"]
        case .lightSwitch: ["RedisDC.acquireInGroup", "RedisDC.releaseInGroup", "RedisDC.recheckGroups"]
        case .buffer: ["RedisDC.pass", "RedisDC.read", "RedisDC.releaseItem"]
        case .exchanger: []
        case .holders: ["RedisDC.inspect", "RedisDC.list"]
        case .classic: ["RedisDC.classicCreate", "RedisDC.classicDestroy"]
        case .corruptSession: ["RedisDC.sweep", "RedisDC.listSessions"]
        case .message: ["QueueListen.send", "QueueListen.listen", "QueueListen.peek", "QueueListen.time"]
        case .broadcast: ["QueueListen.check"]
        case .dropOldest: ["QueueListen.setLimits", "QueueListen.repair", "QueueListen.inspect", "QueueListen.delete"]
        case .board: ["Leaderboard.submit", "Leaderboard.read", "Leaderboard.remove"]
        case .matchmaker: ["Matchmaker.enqueue", "Matchmaker.tick", "Matchmaker.told", "Matchmaker.inspect"]
        case .presence: ["Presence.join", "Presence.apply", "Presence.sweep", "Presence.read", "Presence.page"]
        }
    }

    /// Returns the entries of the modules that no use covers, and those that are covered but do not exist.
    static func uncoveredEntries() throws -> [String] {
        let covered = Set(allCases.flatMap(\.entries))
        return try covered.symmetricDifference(unboundedEntries()).sorted()
    }

    /// The entries of the modules whose work depends on sizes that users choose. The others have a line `Bounded:` in
    /// their comment: they read and write a few records, or run the same functions as another entry, which a use measures.
    private static func unboundedEntries() throws -> Set<String> {
        let sources = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
            .appendingPathComponent("../../../../Sources").standardizedFileURL
        let services = ["board": "Leaderboard", "match": "Matchmaker", "presence": "Presence"]
        var entries: Set<String> = []
        for module in ["RedisDC", "QueueListen", "GameServices"] {
            let folder = sources.appendingPathComponent("\(module)/Lua")
            for file in try FileManager.default.contentsOfDirectory(at: folder, includingPropertiesForKeys: nil) {
                let text = try String(contentsOf: file, encoding: .utf8)
                let headers = text.matches(of: /\n((?:--.*\n)+)function entry\.(\w+)\(/)
                for header in headers where !header.1.contains("\n-- Bounded: ") {
                    let words = header.2.split(separator: "_")
                    let service = module == "GameServices" ? words.first.flatMap { services[String($0)] } : nil
                    let entry = words.dropFirst(service == nil ? 0 : 1)
                    let name = entry.prefix(1).joined() + entry.dropFirst().map(\.capitalized).joined()
                    entries.insert("\(service ?? module).\(name)")
                }
            }
        }
        return entries
    }
}
