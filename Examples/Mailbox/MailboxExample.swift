import Foundation
import Hiredis
import QueueListen

/// Sends or receives: `mailbox send COUNT`, `mailbox receive NAME DEVICE COUNT`.
///
/// Start each in a process of its own, on any machine that can connect to the same Redis
/// (`REDIS_URL`).
@main
struct MailboxExample {
    static func main() async {
        let words = Array(CommandLine.arguments.dropFirst())
        let url = ProcessInfo.processInfo.environment["REDIS_URL"] ?? "redis://127.0.0.1:6379"
        do {
            try await withRedisClient(url: url) { redis in
                try await withPostOffice(redis: redis, namespace: "example") { office in
                    switch (words.first, words.count) {
                    case ("send", 2): try await send(Int(words[1]) ?? 0, office)
                    case ("receive", 4):
                        try await receive(words[1], device: words[2], upTo: Int(words[3]) ?? 0, office)
                    default: fail("usage: mailbox send COUNT | mailbox receive NAME DEVICE COUNT", 64)
                    }
                }
            }
        } catch {
            fail("\(error)", 69)
        }
    }

    private static func fail(_ message: String, _ status: Int32) -> Never {
        FileHandle.standardError.write(Data("mailbox: \(message)\n".utf8))
        exit(status)
    }
}
