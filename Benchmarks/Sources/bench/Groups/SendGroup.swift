import Foundation
import RedisDCTesting

extension Plan {
    /// Measures sends to 1, 16 and 256 mailboxes, against redis-benchmark with the same script.
    func sends(_ server: LocalRedis, _ table: inout Table) throws {
        for recipients in [1, 16, 256] {
            let count = max(Sends.tasks * 4, sizes.sends / recipients)
            let group =
                "Send of 256 bytes to \(recipients == 1 ? "one mailbox" : "\(recipients) mailboxes"), 64 tasks, "
                + "one connection, TCP, sends/s"
            let floor = try redisBenchmark(
                server, requests: count, options: ["-r", "1000000000"], try sendWords(server, recipients))
            table.add(group, "redis-benchmark -P 64 -c 1, the same script", floor)
            for placement in Placement.allCases {
                let arguments = ["\(recipients)"]
                let rate = try rate(worker("send", server.url, count, randomPrefix(), placement, arguments))
                table.add(
                    group, "PostOffice, \(placement.title)", rate, goal: recipients == 1 ? "at least 0.8" : nil)
            }
        }
    }

    /// Returns the words of a send for redis-benchmark.
    private func sendWords(_ server: LocalRedis, _ recipients: Int) throws -> [String] {
        let script = root.appendingPathComponent("Sources/QueueListen/Scripts/send.lua")
        // Arguments of redis-benchmark cannot contain a zero byte, so the script composes its first arguments itself. The
        // time serves as the request's number, which has to grow. The same limits as MailboxLimits.bench.
        let compose = """
            local clock = redis.call('TIME')
            ARGV[1] = struct.pack('<BHBHc2ddc8dddBdd', 0, 1, 0, 1, '01', clock[1] * 1000000 + clock[2], 600000, 'no print', 0,
              100000000, 2 ^ 40, 0, 0, 2592000000) .. 'its mark'
            ARGV[2] = '\\0\\0\\0\\0\\0\\0\\0' .. ARGV[2]

            """
        let source = try compose + String(contentsOf: script, encoding: .utf8)
        let hash = try Program.output(nil, "redis-cli", ["-p", "\(server.port)", "SCRIPT", "LOAD", source])
        let prefix = "ql:{\(randomPrefix()):0}:"
        var words = ["EVALSHA", hash, "\(2 + 2 * recipients)", prefix + "meta", prefix + "sent:benchmark"]
        for number in 0..<recipients { words += [prefix + "box:m\(number)", prefix + "mail:m\(number)"] }
        return words + [
            "",
            "id=12345678901234567890123456789012-123456/0\n\n" + String(repeating: "x", count: 256),
        ]
    }
}
