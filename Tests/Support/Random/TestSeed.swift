// The seeds of random tests: printed at the start, and repeatable with the environment variable REDISDC_SEED.
import Foundation

/// Returns the seed of a random test and prints it to standard error.
///
/// The seed is the value of the environment variable `REDISDC_SEED` if it is set. To repeat a
/// failed run, set it to the printed seed.
///
/// - Parameters:
///   - fixed: the seed if `REDISDC_SEED` is not set; by default a random number below 1,000,000.
///   - test: the name to print; by default the name of the calling function.
public func testSeed(default fixed: UInt64? = nil, of test: String = #function) -> UInt64 {
    let seed = seedToRepeat ?? fixed ?? .random(in: 0..<1_000_000)
    printSeed(seed, of: test)
    return seed
}

/// Returns the seeds of a test that runs once for each seed of a range.
///
/// If the environment variable `REDISDC_SEED` is set, its value is the only seed. The seed is the
/// argument of the test case, which Swift Testing prints when the test case fails.
public func testSeeds(_ range: Range<UInt64>) -> [UInt64] {
    seedToRepeat.map { [$0] } ?? Array(range)
}

/// Prints the seed of a test or of a mix to standard error.
///
/// Standard output is not used because tests read the output of the processes that they start.
public func printSeed(_ seed: UInt64, of name: String) {
    try? FileHandle.standardError.write(contentsOf: Data("\(name): seed \(seed)\n".utf8))
}

/// The value of the environment variable `REDISDC_SEED`; nil if it is not set.
private let seedToRepeat: UInt64? = {
    guard let text = ProcessInfo.processInfo.environment["REDISDC_SEED"] else { return nil }
    guard let seed = UInt64(text) else {
        fatalError("cannot use REDISDC_SEED=\"\(text)\" as a seed: set it to a number from 0 to \(UInt64.max)")
    }
    return seed
}()
