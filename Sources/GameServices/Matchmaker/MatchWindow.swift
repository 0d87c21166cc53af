import Hiredis

/// How far a ticket's rating may be from those of the others, and how this distance grows while the
/// ticket waits.
///
/// A ticket accepts ratings within `start` of its own. After each `interval` the distance grows by
/// `step`, up to `max`.
public struct MatchWindow: Sendable, Hashable {
    /// The distance at the beginning, 0 to 2^40.
    public var start: Int
    /// The amount that is added after each interval, 0 to 2^40.
    public var step: Int
    /// The time between two widenings, 1 ms to 1 day.
    public var interval: Duration
    /// The largest distance, `start` to 2^40.
    public var max: Int

    /// Creates a window that widens. Nothing is validated until a matchmaker is made with it.
    public init(start: Int, step: Int, every interval: Duration, max: Int) {
        (self.start, self.step, self.interval, self.max) = (start, step, interval, max)
    }

    /// A window that accepts all ratings from the beginning.
    public static let unlimited = MatchWindow(
        start: limit, step: 0, every: .seconds(1), max: limit)

    /// The limit of ratings and distances, which keeps their sums exact in the server's numbers.
    static let limit = 1 << 40

    /// The number of widenings until the window has its largest distance.
    var widenings: Int { step > 0 ? (max - start + step - 1) / step : 0 }
}
