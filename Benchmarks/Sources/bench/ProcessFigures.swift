import Foundation
import RedisDCTesting

// Figures about a measured process from the system and from the server.
extension Plan {
    func connections(_ server: LocalRedis, named name: String) throws -> Int {
        try Program.output(nil, "redis-cli", ["-p", "\(server.port)", "CLIENT", "LIST"])
            .split(separator: "\n").filter { $0.contains(" name=\(name) ") }.count
    }

    /// Returns the resident memory of a process, from /proc on Linux and from ps elsewhere.
    func residentBytes(_ process: Int32) throws -> Int {
        if let pages = try? String(contentsOfFile: "/proc/\(process)/statm", encoding: .utf8).split(separator: " "),
            pages.count > 1, let resident = Int(pages[1])
        {
            return resident * Int(sysconf(Int32(_SC_PAGESIZE)))
        }
        let kibibytes = try Program.output(nil, "ps", ["-o", "rss=", "-p", "\(process)"])
        guard let number = Int(kibibytes) else { throw BenchError("ps printed no number: \(kibibytes)") }
        return number * 1024
    }
}
