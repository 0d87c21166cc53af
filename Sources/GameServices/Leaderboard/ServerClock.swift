// The estimate of Redis's clock, from which the keys of the current windows are made.
import Hiredis

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// An estimate of Redis's clock: this machine's clock, corrected by what the server has replied.
///
/// Scripts check it, so that a wrong estimate costs a second round trip and nothing else.
struct ServerClock: Sendable {
    private let machineTime: @Sendable () -> Int
    private let correction = Locked(0)

    /// - Parameter machineTime: microseconds since 1970.
    init(machineTime: @escaping @Sendable () -> Int = { Int(Date().timeIntervalSince1970 * 1e6) }) {
        self.machineTime = machineTime
    }

    /// Microseconds since 1970, 0 or more.
    func now() -> Int { max(0, machineTime() + correction.withLock { $0 }) }

    /// Corrects the estimate.
    ///
    /// - Parameter time: the server's time in microseconds since 1970.
    func set(_ time: Int) {
        let difference = time - machineTime()
        correction.withLock { $0 = difference }
    }
}
