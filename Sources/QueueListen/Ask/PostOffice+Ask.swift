import CoordinationBase
import Hiredis

extension PostOffice {
    /// Sends a message and waits for the answer of whoever handles it: a worker, a receiver, or a loop.
    ///
    /// ```swift
    /// let answer = try await office.ask(Message(text: "1 2 3"), to: "sums", timeout: .seconds(5))
    /// print(answer.text)
    /// ```
    ///
    /// The question is a message like others: it waits in the mailbox until somebody handles it, and may be
    /// handled again when a worker dies. The first answer or failure counts, so let one receiver or the workers
    /// handle a mailbox of questions. If the question waits until the call has timed out, it expires, and nobody
    /// handles it; if Redis has stored it late, because the send was repeated, so much later. If this process dies,
    /// the question is handled, and its answer goes nowhere.
    ///
    /// The first question makes a mailbox for answers, which expires an hour after the last one.
    ///
    /// - Parameters:
    ///   - message: the question. Its `ttl` is at most the timeout.
    ///   - recipient: the name of one mailbox.
    ///   - timeout: the limit of the whole call, from 1 ms to 24 hours.
    /// - Returns: the answer.
    /// - Throws:
    ///   - `.timedOut`: there was no answer in time. The question may have been handled, or still be.
    ///   - `.failed`: it has failed for good. The message is the reason.
    ///   - `.cancelled`; `.stopped` if the post office has stopped; the codes of
    ///     ``PostOffice/send(_:to:id:durability:)-([Message],_,_,_)``. With `mayHaveRun` the question may be handled.
    public func ask(
        _ message: Message, to recipient: String, timeout: Duration = .seconds(30)
    ) async throws(QueueListenError) -> ReceivedMessage {
        guard (.milliseconds(1)...(.seconds(86400))).contains(timeout) else {
            throw QueueListenError(.invalidArgument, "timeout is \(timeout), expected 1 ms to 24 hours")
        }
        let (answers, continuation) = AsyncThrowingStream.makeStream(of: ReceivedMessage.self)
        let phase = Locked(QuestionPhase.opening)
        let asking = Task {
            do {
                continuation.yield(try await answer(to: message, recipient, clock.now() + timeout, timeout, phase))
            } catch { continuation.finish(throwing: error) }
        }
        let timer = Task { [clock] in
            do { try await clock.sleep(timeout) } catch { return }
            continuation.finish(
                throwing: QueueListenError(
                    .timedOut,
                    "\"\(recipient)\" has not answered within \(timeout)"
                        + (phase.withLock { $0 } == .opening ? "" : ": the question may still be handled")))
        }
        defer { for task in [asking, timer] { task.cancel() } }
        do {
            // Nothing that cannot be cancelled is waited for here.
            for try await answer in answers { return answer }
            throw QueueListenError(.cancelled, "the task was cancelled")
        } catch {
            var error = QueueListenError(error)
            let phase = phase.withLock { $0 }
            // The send itself knows whether it may have taken effect.
            let isOfSend = phase == .sending && error.code != .timedOut && error.code != .cancelled
            error.mayHaveRun = isOfSend ? error.mayHaveRun : phase != .opening
            throw error
        }
    }

    /// How far a question has come.
    private enum QuestionPhase { case opening, sending, sent }

    /// Asks, and returns the first answer.
    private func answer(
        to message: Message, _ recipient: String, _ end: Duration, _ timeout: Duration, _ phase: Locked<QuestionPhase>
    ) async throws -> ReceivedMessage {
        let (number, answers) = try await answerDesk.open(self)
        defer { answerDesk.close(number, clock) }
        // Nobody handles it when this call has ended.
        let remaining = max(.milliseconds(1), end - clock.now())
        var question = message
        question.ttl = min(message.ttl ?? remaining, remaining)
        question.answerAddress = AnswerAddress(
            number: number, patience: remaining.wholeMilliseconds, mailbox: answerDesk.mailbox)
        try Task.checkCancellation()
        phase.withLock { $0 = .sending }
        try await send([question], to: [recipient])
        phase.withLock { $0 = .sent }
        for try await answer in answers { return answer }
        throw CancellationError()
    }

    /// Answers a question. What is no question, or is not waited for any more, needs no answer.
    ///
    /// A call that fails can be repeated: the answers to one question count once, and the first one counts. If the
    /// process dies before it answers, whoever handles the question next does.
    ///
    /// - Parameters:
    ///   - question: the message that was received.
    ///   - answer: the answer, whose `ttl` is at most an hour.
    /// - Returns: `false` if nobody waits for it, or another answer was given before.
    /// - Throws: the codes of ``PostOffice/send(_:to:id:durability:)-([Message],_,_,_)``.
    @discardableResult
    public func answer(_ question: ReceivedMessage, with answer: Message) async throws(QueueListenError) -> Bool {
        try await self.answer(question, with: answer, failure: nil)
    }

    /// Says that a question was not answered and will not be.
    func fail(_ question: ReceivedMessage, _ reason: String) async throws(QueueListenError) {
        if question.answerAddress == nil { return }
        let line = String(
            String.UnicodeScalarView(reason.unicodeScalars.filter { $0.properties.generalCategory != .control })
                .prefix(500))
        let reason = line.isEmpty ? "it has failed for good" : line
        _ = try await answer(question, with: Message(bytes: []), failure: reason)
    }

    private func answer(
        _ question: ReceivedMessage, with answer: Message, failure: String?
    ) async throws(QueueListenError) -> Bool {
        guard let address = question.answerAddress, !question.isForgotten else { return false }
        var message = answer
        message.ttl = min(answer.ttl ?? .seconds(3600), .seconds(3600))
        message.answers = AnsweredQuestion(number: address.number, failure: failure)
        do {
            try await send([message], to: [address.mailbox], id: "answer \(address.mailbox) \(address.number)")
            return true
        } catch {
            if error.code == .conflict { return false }
            throw error
        }
    }
}

extension Job {
    /// Answers the question that this job is: see ``PostOffice/ask(_:to:timeout:)``.
    ///
    /// If the job has failed for good without an answer, who asks is told the reason.
    ///
    /// - Returns: `false` if nobody waits for it, or another answer was given before.
    /// - Throws: the codes of ``PostOffice/send(_:to:id:durability:)-([Message],_,_,_)``.
    @discardableResult
    public func answer(with answer: Message) async throws(QueueListenError) -> Bool {
        try await mailbox.office.answer(message, with: answer)
    }
}
