// What workers have taken of a mailbox, when it drops messages, forgets devices, or has lost what it knows.
import Foundation
import Hiredis
import RedisDCTesting
import TestSupport
import Testing

@testable import QueueListen
@testable import QueueListenTestSupport

extension QueueListenTests {
    @Suite("The position of workers in a mailbox", .serialized)
    struct WorkPositionTests {
        /// When the mailbox has seen the workers last; `nil` if it does not know them.
        private func seen(_ mailbox: Mailbox) async throws -> Date? {
            try await mailbox.devices().first { $0.name == "workers" }?.lastSeen
        }

        @Test("when a full mailbox drops its oldest messages, workers run all that are left, in order")
        func dropped() async throws {
            try await withServer { _, redis, _ in
                let (ran, mayRun) = (Locked<[String]>([]), Locked(false))
                try await withPostOffice(redis: redis, configuration: patientOffice()) { office in
                    let mailbox = try office.mailbox("jobs")
                    var limits = MailboxLimits()
                    limits.maxMessages = 10
                    limits.whenFull = .dropOldest
                    try await mailbox.setLimits(limits)
                    try await office.send("0", to: "jobs")
                    let work = Task {
                        try await mailbox.work(quickWork(1)) { job in
                            ran.withLock { $0.append(job.message.text) }
                            while !mayRun.withLock({ $0 }) { try await Task.sleep(for: .milliseconds(5)) }
                        }
                    }
                    try await until("the first one runs") { ran.withLock { $0 } == ["0"] }
                    for number in 1...25 { try await office.send("\(number)", to: "jobs") }
                    mayRun.withLock { $0 = true }
                    try await until("the last one has run") { ran.withLock { $0.last } == "25" }
                    work.cancel()
                    try await work.value
                    #expect(ran.withLock { $0 } == ["0"] + (16...25).map { "\($0)" })
                }
            }
        }

        @Test("workers that begin after Redis has forgotten them do not run again what another device has not read")
        func forgotten() async throws {
            try await withServer { _, redis, other in
                let ran = Locked<[String]>([])
                try await withPostOffice(redis: redis, configuration: patientOffice()) { office in
                    let mailbox = try office.mailbox("jobs")
                    #expect(try await mailbox.look(device: "audit").word == "timedOut")
                    for number in 0..<6 {
                        try await office.send("\(number)", to: "jobs")
                        let work = Task {
                            try await mailbox.work(quickWork()) { job in ran.withLock { $0.append(job.message.text) } }
                        }
                        try await until("it has run") { ran.withLock { $0.count } == number + 1 }
                        work.cancel()
                        try await work.value
                        // The time to live of what is known without workers and jobs is over, or the device is forgotten.
                        if number.isMultiple(of: 2) {
                            #expect(try await other.send("PTTL", "ql:{default:0}:work:jobs").integer ?? 0 > 0)
                            _ = try await other.send("DEL", "ql:{default:0}:work:jobs")
                        } else {
                            try await mailbox.forget(device: "workers")
                        }
                    }
                    #expect(ran.withLock { $0 } == (0..<6).map { "\($0)" })
                    #expect(try await mailbox.count == 6)
                }
            }
        }

        @Test("workers that are paused keep their messages, although devices are soon forgotten")
        func paused() async throws {
            try await withServer { _, redis, _ in
                let ran = Locked<[String]>([])
                var configuration = patientOffice()
                configuration.limits.deviceTTL = .seconds(10)
                try await withPostOffice(redis: redis, configuration: configuration) { office in
                    let mailbox = try office.mailbox("jobs")
                    let work = Task {
                        try await mailbox.work(quickWork()) { job in ran.withLock { $0.append(job.message.text) } }
                    }
                    try await until("it is known") { try await mailbox.devices().contains { $0.name == "workers" } }
                    try await mailbox.pauseWork()
                    for number in 0..<3 { try await office.send("\(number)", to: "jobs") }
                    // Another device reads and acknowledges all the time, beyond the time to live of devices.
                    let first = try #require(try await seen(mailbox))
                    try await until("the workers are still a device after its time to live") {
                        let read = try await mailbox.look(device: "audit")
                        try await mailbox.acknowledge(read.cursor, device: "audit")
                        return try await (seen(mailbox) ?? first).timeIntervalSince(first) > 11
                    }
                    #expect(try await mailbox.count == 3)
                    try await mailbox.resumeWork()
                    try await until("they have run") { ran.withLock { $0.count } == 3 }
                    work.cancel()
                    try await work.value
                }
            }
        }
    }
}
