// The keys of a classic semaphore, and the return of a permit that was taken for a caller that has given up.
import CoordinationBase
import Hiredis

/// The Redis keys of one classic semaphore.
struct ClassicKeys: Sendable {
    static let tombstoneMilliseconds = 60_000
    static let markerSeconds = 600

    /// The list of permits, which other programs use too.
    let permits: String
    /// The number of permits at creation. The hash tag puts this key and the others into the slot
    /// of the list.
    let meta: String
    /// The list of tombstones, which waiters listen to as well.
    let gone: String
    let goneBytes: [UInt8]

    private let markerPrefix: String

    /// In a namespace, all keys begin like those of the engine, so that one pattern of an ACL user
    /// covers both.
    init(_ name: String, namespace: String?) {
        if let namespace {
            permits = "rdc:{\(namespace):sem:\(name)}"
            meta = permits + ":meta"
            gone = permits + ":gone"
            markerPrefix = permits + ":back:"
        } else {
            permits = "rdc:sem:\(name)"
            meta = "rdc:sem-meta:{\(permits)}"
            gone = "rdc:sem-gone:{\(permits)}"
            markerPrefix = "rdc:sem-back:{\(permits)}:"
        }
        goneBytes = Array(gone.utf8)
    }

    func marker(_ id: String) -> String { markerPrefix + id }
}

/// Returns what a `BRPOP` took for a caller that no longer wants it.
struct ClassicGiveBack: Sendable {
    let redis: any Redis
    let keys: ClassicKeys
    var clock = MonotonicClock.continuous()

    /// Reverses the effect of a `BRPOP` on the permits and the tombstones.
    func undo(_ reply: RESPValue) async {
        guard let parts = reply.array, parts.count == 2, let element = parts[1].bytes else { return }
        if parts[0].bytes == keys.goneBytes { await passOn() } else { await giveBack(element) }
    }

    /// Returns a permit to the end of the list that it came from, at most once, however many
    /// attempts that takes.
    ///
    /// Attempts that have not reached the server are repeated without limit. After one whose reply
    /// was lost, the permit may have been returned, which only the marker shows: then the attempts
    /// end at half of the marker's time, so that none arrives when it has expired. A permit that was
    /// not returned until then is lost, as with a process that dies.
    func giveBack(_ permit: [UInt8]) async {
        let marker = keys.marker(Self.makeID())
        await untilDone { () async throws(RedisError) in
            _ = try await redis.script(
                Scripts.classicGiveBack, keys: [keys.permits, marker],
                arguments: [.bytes(permit), .integer(ClassicKeys.markerSeconds)])
        }
    }

    /// Adds the tombstone again, for the next waiter. Adding it twice does no harm.
    private func passOn() async {
        await untilDone { () async throws(RedisError) in
            _ = try await redis.script(
                Scripts.classicPassOn, keys: [keys.gone, keys.meta],
                arguments: [.integer(ClassicKeys.tombstoneMilliseconds)])
        }
    }

    private func untilDone(_ attempt: () async throws(RedisError) -> Void) async {
        var end: Duration?
        while true {
            let began = clock.now()
            if let end, began >= end { return }
            do throws(RedisError) { return try await attempt() } catch {
                // A permit must not be lost, so the attempts also continue while the server is out of memory. After any
                // other refusal, and when the client has stopped, another attempt would have the same result.
                guard error.isTransient || error.code == .outOfMemory else { return }
                if error.mayHaveRun { end = end ?? began + .seconds(ClassicKeys.markerSeconds) / 2 }
            }
            try? await clock.sleep(.milliseconds(100))
        }
    }

    private static func makeID() -> String {
        String(UInt64.random(in: .min ... .max), radix: 36) + String(UInt64.random(in: .min ... .max), radix: 36)
    }
}

extension Scripts {
    static let classicPassOn = RedisScript(embedded: PackageResources.classic_pass_on_lua)
    static let classicGiveBack = RedisScript(embedded: PackageResources.classic_give_back_lua)
}
