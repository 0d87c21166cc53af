// The keys of a classic semaphore, and the way back for a permit that was taken for someone who no longer wants it.
import Hiredis

struct ClassicKeys: Sendable {
    static let tombstoneMilliseconds = 60_000
    static let markerSeconds = 600

    /// The list that other programs know.
    let permits: String
    /// What it was created with. The hash tag puts it, and the others, into the slot of the list.
    let meta: String
    let gone: String
    let goneBytes: [UInt8]

    init(_ name: String) {
        permits = "rdc:sem:\(name)"
        meta = "rdc:sem-meta:{\(permits)}"
        gone = "rdc:sem-gone:{\(permits)}"
        goneBytes = Array(gone.utf8)
    }

    func marker(_ id: String) -> String { "rdc:sem-back:{\(permits)}:\(id)" }
}

struct ClassicGiveBack: Sendable {
    let redis: any Redis
    let keys: ClassicKeys

    /// Undoes the reply of a BRPOP on the permits and the tombstones.
    func undo(_ reply: RESPValue) async {
        guard let parts = reply.array, parts.count == 2, let element = parts[1].bytes else { return }
        if parts[0].bytes == keys.goneBytes { await passOn() } else { await giveBack(element) }
    }

    /// Puts a permit back at the end it came from, once, however many attempts that takes.
    func giveBack(_ permit: [UInt8]) async {
        let marker = keys.marker(Self.makeID())
        await untilDone { () async throws(RedisError) in
            _ = try await redis.script(
                Scripts.classicGiveBack, keys: [keys.permits, marker],
                arguments: [.bytes(permit), .integer(ClassicKeys.markerSeconds)])
        }
    }

    /// Leaves the tombstone for the next waiter. Twice does no harm.
    private func passOn() async {
        await untilDone { () async throws(RedisError) in
            _ = try await redis.script(
                Scripts.classicPassOn, keys: [keys.gone, keys.meta],
                arguments: [.integer(ClassicKeys.tombstoneMilliseconds)])
        }
    }

    private func untilDone(_ attempt: () async throws(RedisError) -> Void) async {
        while true {
            do throws(RedisError) { return try await attempt() } catch {
                // A permit must not be lost, so attempts also go on while the server is out of memory. After any other
                // refusal, and with a client that has stopped, no further attempt would end differently.
                guard error.isTransient || error.code == .outOfMemory else { return }
            }
            try? await Task.sleep(for: .milliseconds(100))
        }
    }

    private static func makeID() -> String {
        String(UInt64.random(in: .min ... .max), radix: 36) + String(UInt64.random(in: .min ... .max), radix: 36)
    }
}
