// The questions that a post office has asked, and the mailbox to which their answers go.
//
// The first question makes the mailbox and begins to read it. While no question waits the reading ends after some time, so
// that a post office that is not run, or not used any more, keeps no task. The mailbox expires by itself.
import CoordinationBase
import Hiredis

/// The questions of one post office.
final class AnswerDesk: Sendable {
    private struct State {
        var waiting: [UInt64: Answers.Continuation] = [:]
        var lastNumber: UInt64 = 0
        /// Counts the tasks that have read.
        var generation = 0
        /// Makes the mailbox and reads it. `nil` while nothing is read.
        var opening: Task<Void, any Error>?
        var reading: Task<Void, Never>?
        /// Ends the reading while no question waits.
        var closing: Task<Void, Never>?
    }

    /// The name of the mailbox.
    let mailbox = AnswerAddress.prefix + UInt64.random(in: .min ... .max).hexadecimal
    private let state = Locked(State())

    /// How long the mailbox is read although no question waits.
    private static let linger = Duration.seconds(10)

    /// The answers to a question, of which the first one counts.
    typealias Answers = AsyncThrowingStream<ReceivedMessage, any Error>

    /// Notes a question that will be asked, and begins to read the mailbox unless it is read.
    func open(_ office: PostOffice) async throws -> (number: UInt64, answers: Answers) {
        let (answers, continuation) = Answers.makeStream(bufferingPolicy: .bufferingOldest(1))
        let (number, opening) = state.withLock { state in
            state.lastNumber += 1
            state.waiting[state.lastNumber] = continuation
            state.closing?.cancel()
            state.closing = nil
            let opening = state.opening ?? Task { try await self.read(office) }
            state.opening = opening
            return (state.lastNumber, opening)
        }
        do { try await opening.value } catch {
            state.withLock { if $0.opening == opening { $0.opening = nil } }
            close(number, office.clock)
            throw error
        }
        return (number, answers)
    }

    /// Forgets a question.
    func close(_ number: UInt64, _ clock: MonotonicClock) {
        state.withLock { state in
            state.waiting[number] = nil
            lingerIfIdle(&state, clock)
        }
    }

    private func lingerIfIdle(_ state: inout State, _ clock: MonotonicClock) {
        guard state.waiting.isEmpty, state.reading != nil, state.closing == nil else { return }
        state.closing = Task {
            do { try await clock.sleep(Self.linger) } catch { return }
            self.stopReading()
        }
    }

    private func stopReading() {
        let reading = state.withLock { state -> Task<Void, Never>? in
            guard state.waiting.isEmpty else { return nil }
            defer { (state.opening, state.reading, state.closing) = (nil, nil, nil) }
            return state.reading
        }
        reading?.cancel()
    }

    /// Makes the mailbox, and begins to read it.
    private func read(_ office: PostOffice) async throws {
        let mailbox = try office.mailbox(self.mailbox)
        let cursor = try await prepare(mailbox)
        state.withLock { state in
            state.generation += 1
            state.reading = Task { [generation = state.generation] in
                do {
                    for try await event in mailbox.messages(after: cursor) {
                        switch event {
                        case .message(let message): receive(message)
                        // An answer has made the mailbox again, with other limits.
                        case .gap: _ = try? await prepare(mailbox)
                        }
                    }
                } catch { fail(error, generation) }
            }
            lingerIfIdle(&state, office.clock)
        }
    }

    /// Makes the mailbox, and its device, which gets what is sent afterwards.
    private func prepare(_ mailbox: Mailbox) async throws -> Cursor {
        let office = mailbox.office
        var limits = MailboxLimits()
        // Who answers is never refused, and what nobody reads any more expires.
        limits.whenFull = .dropOldest
        limits.ttl = max(.seconds(3600), office.configuration.recheckInterval * 3)
        let end = office.clock.now() + office.configuration.callTimeout
        return try await repeating(until: end, office.clock, throwing: QueueListenError.self) { [limits] in
            try await mailbox.setLimits(limits)
            return try await mailbox.register()
        }
    }

    private func receive(_ message: ReceivedMessage) {
        guard let question = message.answers else { return }
        let waiting = state.withLock { $0.waiting[question.number] }
        if let failure = question.failure {
            waiting?.finish(throwing: QueueListenError(.failed, failure, mayHaveRun: true))
        } else {
            waiting?.yield(message)
            waiting?.finish()
        }
    }

    /// Ends all questions: answers are not read any more.
    private func fail(_ error: any Error, _ generation: Int) {
        let waiting = state.withLock { state -> [Answers.Continuation] in
            // Another task reads.
            guard state.generation == generation, state.reading != nil else { return [] }
            (state.opening, state.reading) = (nil, nil)
            return Array(state.waiting.values)
        }
        for answer in waiting { answer.finish(throwing: error) }
    }
}

extension AnswerDesk {
    /// The number of questions that wait.
    var count: Int { state.withLock { $0.waiting.count } }

    /// Whether the mailbox is read.
    var isReading: Bool { state.withLock { $0.reading != nil } }
}
