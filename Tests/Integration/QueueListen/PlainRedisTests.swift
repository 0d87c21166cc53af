import Hiredis
import QueueListen
import RedisDCTesting
import TestSupport
import Testing

extension QueueListenTests {
    @Suite("With a Redis that implements only the public protocol", .serialized, .timeLimit(.minutes(10)))
    struct PlainRedisTests {
        @Test("a post office wakes its listeners")
        func listening() async throws {
            try await withServer { _, redis, other in
                var configuration = PostOfficeConfiguration()
                // Without a wake-up a listener would look again after these times.
                (configuration.recheckInterval, configuration.pollInterval) = (.seconds(600), .seconds(600))
                try await withPostOffice(redis: PlainRedis(redis), configuration: configuration) { plain in
                    try await withPostOffice(redis: other, configuration: configuration) { direct in
                        let received = Task {
                            var texts: [String] = []
                            for try await event in try plain.mailbox("alice").messages() {
                                guard case .message(let message) = event else { continue }
                                texts.append(message.text)
                                if texts.count == 20 { break }
                            }
                            return texts
                        }
                        for number in 0..<20 {
                            let office = number.isMultiple(of: 2) ? plain : direct
                            try await office.send("\(number)", to: "alice")
                        }
                        #expect(try await received.value == (0..<20).map { "\($0)" })
                    }
                }
            }
        }
    }
}
