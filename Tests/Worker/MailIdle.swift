import Foundation
import Hiredis
import QueueListen

/// Many listeners that wait, and what they take.
struct MailIdle {
    let office: PostOffice
    let redis: RedisClient

    /// - Returns: bytes of this process for each listener.
    func run(_ count: Int) async throws -> String {
        let before = Self.residentBytes()
        return try await withThrowingTaskGroup(of: Void.self) { group in
            for number in 0..<count {
                let mailbox = try office.mailbox("mailbox \(number)")
                group.addTask { _ = try await mailbox.listen() }
                // In small portions: what counts is what stays, not what all of them take at once to begin.
                guard number % 100 == 99 else { continue }
                while try await redis.send("EXISTS", .string("ql:{default:0}:box:mailbox \(number)")).integer == 0 {
                    try await Task.sleep(for: .milliseconds(1))
                }
            }
            let bytes = (Self.residentBytes() - before) / count
            let clients = try await redis.send("CLIENT", "LIST").string?.split(separator: "\n").count ?? 0
            group.cancelAll()
            return "\(bytes) bytes each, \(clients) connections"
        }
    }

    private static func residentBytes() -> Int {
        let text = (try? String(contentsOfFile: "/proc/self/statm", encoding: .utf8)) ?? ""
        return (text.split(separator: " ").dropFirst().first.flatMap { Int($0) } ?? 0) * 4096
    }
}
