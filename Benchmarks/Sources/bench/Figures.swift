import Foundation
import Histogram

/// The percentiles that a measured process prints, in microseconds. The C baseline prints the same keys.
// swift-format-ignore: AlwaysUseLowerCamelCase
struct Figures: Codable, Sendable {
    var p50_us: Double
    var p99_us: Double

    init(_ histogram: Histogram<UInt32>, per count: Double = 1) {
        p50_us = Double(histogram.valueAtPercentile(50)) / 1000 / count
        p99_us = Double(histogram.valueAtPercentile(99)) / 1000 / count
    }

    static func makeHistogram() -> Histogram<UInt32> { Histogram(numberOfSignificantValueDigits: .three) }
}

/// Returns the time in nanoseconds of the monotonic clock that all processes of the machine share.
func monotonicNow() -> Int64 {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
}
