// Reports that the commands of several primitives print in the same way.
import CommandLineTool
import RedisDC

extension GlobalOptions {
    /// Reports how a wait ended. With `--json`, a wait that timed out is reported too, before its error
    /// is thrown.
    ///
    /// - Parameters:
    ///   - timedOut: the report of a wait that timed out.
    ///   - wait: waits, and reports its success.
    func reportWait(timedOut: some Encodable, _ wait: () async throws -> Void) async throws {
        do { try await wait() } catch let error as RedisDCError where error.code == .timedOut && json {
            try report("", timedOut)
            throw error
        }
    }

    /// Reports whether there was something to destroy.
    ///
    /// - Parameter kind: such as `latch`.
    func reportDestroyed(_ destroyed: Bool, _ kind: String, _ name: String) throws {
        try report(destroyed ? "destroyed" : "no such \(kind)", DestroyReport(name: name, destroyed: destroyed))
    }
}

private struct DestroyReport: Encodable {
    var name: String
    var destroyed: Bool
}
