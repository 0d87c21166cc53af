import Foundation
import RedisDCTesting

/// What the system and the server know of a measured process.
extension Plan {
    func connections(_ server: LocalRedis, named name: String) throws -> Int {
        try Program.output(nil, "redis-cli", ["-p", "\(server.port)", "CLIENT", "LIST"])
            .split(separator: "\n").filter { $0.contains(" name=\(name) ") }.count
    }

    /// Resident memory: from /proc on Linux, and from ps where there is none.
    func residentBytes(_ process: Int32) throws -> Int {
        if let pages = try? String(contentsOfFile: "/proc/\(process)/statm", encoding: .utf8).split(separator: " "),
            pages.count > 1, let resident = Int(pages[1])
        {
            return resident * Int(sysconf(Int32(_SC_PAGESIZE)))
        }
        let kibibytes = try Program.output(nil, "ps", ["-o", "rss=", "-p", "\(process)"])
        guard let number = Int(kibibytes) else { throw Failed("ps said: \(kibibytes)") }
        return number * 1024
    }
}
