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

    /// Scripts whose work does not depend on sizes that users choose: they read and write a few records, or run the same
    /// functions as another entry, which a use above measures.
    private static let ofFixedSize: [String: String] = [
        "RedisDC.classicPassOn": "one element", "RedisDC.classicGiveBack": "one element",
        "RedisDC.settleClaim": "one record", "RedisDC.settleCall": "one record", "RedisDC.rateLimit": "one record",
        "RedisDC.setAside": "one claim", "RedisDC.reduce": "as release",
        "RedisDC.extendFences": "one claim", "RedisDC.create": "as signal", "RedisDC.resize": "as signal",
        "RedisDC.setTurnstile": "as signal", "RedisDC.endPermits": "as release", "RedisDC.participate": "one claim",
        "RedisDC.register": "one claim", "RedisDC.releaseParticipant": "as release",
        "RedisDC.endParticipant": "as release", "RedisDC.endItem": "as releaseItem",
        "RedisDC.acquireForPut": "as acquire, and one id", "RedisDC.passOnce": "as pass, and one id",
        "RedisDC.endInGroup": "as releaseInGroup", "RedisDC.signalGroups": "as releaseInGroup",
        "RedisDC.createForGroups": "as releaseInGroup", "RedisDC.resizeForGroups": "as releaseInGroup",
        "RedisDC.endParty": "as releaseParty", "RedisDC.claims": "a page of 200 slots: BoundHazards.swift",
        "QueueListen.forget": "one device", "QueueListen.begin": "one send", "QueueListen.finish": "one send",
        "QueueListen.takeOver": "one page of sends", "Matchmaker.end": "one ticket",
    ]

    /// Returns the entries of the modules that no use covers, and those that are covered but do not exist.
    static func uncoveredEntries() throws -> [String] {
        let covered = Set(allCases.flatMap(\.entries)).union(ofFixedSize.keys)
        return try covered.symmetricDifference(entriesOfModules()).sorted()
    }

    /// The scripts of the modules: their files.
    private static func entriesOfModules() throws -> Set<String> {
        let sources = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
            .appendingPathComponent("../../../../Sources").standardizedFileURL
        let services = ["board": "Leaderboard", "match": "Matchmaker", "presence": "Presence"]
        var entries: Set<String> = []
        for module in ["RedisDC", "QueueListen", "GameServices"] {
            let folder = sources.appendingPathComponent("\(module)/Scripts").path
            for file in try FileManager.default.contentsOfDirectory(atPath: folder) where file.hasSuffix(".lua") {
                let words = file.dropLast(4).split(separator: "_")
                let service = module == "GameServices" ? words.first.flatMap { services[String($0)] } : nil
                let name = words.dropFirst(service == nil ? 0 : 1)
                entries.insert("\(service ?? module)." + name.prefix(1).joined() + name.dropFirst().map(\.capitalized).joined())
            }
        }
        return entries
    }
}
