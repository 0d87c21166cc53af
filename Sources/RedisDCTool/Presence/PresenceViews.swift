// Commands that show a bucket.
import ArgumentParser
import CommandLineTool
import GameServices

/// The `redisdc presence snapshot` command.
struct PresenceSnapshotCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "snapshot", abstract: "Print all objects of a bucket at one version.",
        discussion: "Each line is a key, the user or user/client that owns it, and the value."
    )
    .examples("redisdc presence snapshot lobby")
    @OptionGroup var presence: PresenceOptions

    func run() async throws {
        try await presence.withBucket { bucket in
            for object in try await bucket.snapshot().objects {
                try presence.global.report(bytes: object.line, PresenceReport("object", object))
            }
        }
    }
}

/// The `redisdc presence watch` command.
struct PresenceWatch: ReaderBoundCommand {
    static let configuration = CommandConfiguration(
        commandName: "watch", abstract: "Print a bucket and its changes, until interrupted.",
        discussion: """
            Begins with all objects. After a loss of changes, prints a line that says so, and all objects again. While it \
            runs, it ends the objects of processes that have died.
            """
    )
    .examples("redisdc presence watch lobby --json")
    @OptionGroup var presence: PresenceOptions

    func run() async throws {
        try await presence.withBucket { bucket in
            for try await event in bucket.changes() { try show(event) }
        }
    }

    private func show(_ event: PresenceEvent) throws {
        let global = presence.global
        switch event {
        case .gap: try global.report("-- changes are missing", PresenceReport("gap"))
        case .snapshot(let snapshot):
            var report = PresenceReport("snapshot")
            (report.version, report.objects) = (snapshot.position.version, snapshot.objects.count)
            try global.report("-- \(snapshot.objects.count) objects", report)
            for object in snapshot.objects {
                try global.report(bytes: Array("  ".utf8) + object.line, PresenceReport("object", object))
            }
        case .change(let change):
            switch change.kind {
            case .put(let object, let isNew):
                try global.report(
                    bytes: Array((isNew ? "+ " : "= ").utf8) + object.line,
                    PresenceReport(isNew ? "new" : "put", object))
            case .left(let leave):
                var report = PresenceReport("left")
                (report.key, report.user, report.client) = (leave.key, leave.user, leave.client)
                (report.reason, report.version) = ("\(leave.reason)", change.version)
                try global.report("- \(leave.key)  \(leave.reason)", report)
            }
        }
    }
}
