/// The version of a server. Versions are compared number by number.
public struct ServerVersion: Sendable, Hashable, Comparable, CustomStringConvertible {
    /// The first number.
    public var major: Int
    /// The second number.
    public var minor: Int
    /// The third number.
    public var patch: Int

    /// Makes a version from its numbers.
    public init(_ major: Int, _ minor: Int, _ patch: Int = 0) {
        self.major = major
        self.minor = minor
        self.patch = patch
    }

    /// Reads `redis_version:7.0.15` from the reply of `INFO`. Valkey reports the Redis version that
    /// it is compatible with.
    init?(info: String) {
        guard let line = info.split(whereSeparator: \.isNewline).first(where: { $0.hasPrefix("redis_version:") }) else {
            return nil
        }
        let numbers = line.drop { $0 != ":" }.dropFirst().split(separator: ".").map { Int($0) ?? 0 }
        self.init(numbers.first ?? 0, numbers.count > 1 ? numbers[1] : 0, numbers.count > 2 ? numbers[2] : 0)
    }

    /// The numbers, separated by dots.
    public var description: String { "\(major).\(minor).\(patch)" }

    /// Whether the first version is older than the second.
    public static func < (left: Self, right: Self) -> Bool {
        (left.major, left.minor, left.patch) < (right.major, right.minor, right.patch)
    }

    /// The oldest version that is supported.
    public static let minimum = ServerVersion(6, 2)
}
