import TestRandom
import Testing

@testable import Hiredis
@testable import HiredisTestSupport

@Suite("BlockingCommand")
struct BlockingCommandTests {
    static let durations: [(Duration, String)] = [
        (.zero, "0.001"),
        (.nanoseconds(1), "0.001"),
        (.microseconds(999), "0.001"),
        (.milliseconds(1), "0.001"),
        (.milliseconds(1) + .nanoseconds(1), "0.002"),
        (.milliseconds(10), "0.010"),
        (.milliseconds(999), "0.999"),
        (.milliseconds(999) + .nanoseconds(1), "1.000"),
        (.seconds(1), "1.000"),
        (.seconds(1) + .milliseconds(50), "1.050"),
        (.seconds(90) + .milliseconds(5), "90.005"),
        (.seconds(86_400 * 365), "31536000.000"),
        (.seconds(-5), "0.001"),
        (Duration(secondsComponent: 2, attosecondsComponent: 1), "2.001"),
    ]

    @Test("a timeout is sent in seconds, rounded up to milliseconds and never 0", arguments: durations)
    func seconds(duration: Duration, text: String) {
        #expect(BlockingCommand.seconds(duration) == text)
    }

    @Test("a positive timeout is never sent as 0 or rounded down", arguments: testSeeds(0..<4))
    func random(seed: UInt64) throws {
        var generator = SplitMix(seed: seed)
        for _ in 0..<2000 {
            let duration = Duration.nanoseconds(
                Int64(generator.next() >> Int.random(in: 2...63, using: &generator)) + 1)
            let text = BlockingCommand.seconds(duration)
            let parts = text.split(separator: ".")
            try #require(parts.count == 2 && parts[1].count == 3, "\(text)")
            let milliseconds = try #require(Int64(parts[0])) * 1000 + (try #require(Int64(parts[1])))
            #expect(milliseconds > 0)
            #expect(.milliseconds(milliseconds) >= duration)
            #expect(.milliseconds(milliseconds) - duration < .milliseconds(1))
        }
    }

    @Test("the longest duration does not trap")
    func longest() {
        #expect(!BlockingCommand.seconds(.seconds(Int64.max)).isEmpty)
    }

    @Test("the timeout is the last argument or follows the command name")
    func position() {
        let last = BlockingCommand(["BLMOVE", "a", "b", "LEFT", "RIGHT"])
        #expect(last.complete(serverTimeout: .seconds(2)) == ["BLMOVE", "a", "b", "LEFT", "RIGHT", "2.000"])
        let first = BlockingCommand(["BLMPOP", "1", "a", "LEFT"], timeout: .first)
        #expect(first.complete(serverTimeout: .milliseconds(20)) == ["BLMPOP", "0.020", "1", "a", "LEFT"])
    }

    @Test("a command without a timeout blocks indefinitely")
    func forever() {
        #expect(BlockingCommand.brpop("a", "b").complete(serverTimeout: nil) == ["BRPOP", "a", "b", "0"])
        #expect(BlockingCommand.blpop("a").complete(serverTimeout: nil) == ["BLPOP", "a", "0"])
    }
}
