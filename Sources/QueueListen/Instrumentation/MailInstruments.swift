import CoordinationBase
import Hiredis
import Synchronization

#if LoggingSupport
    import Logging
#endif
#if MetricsSupport
    import CoreMetrics
#endif

/// The logs, metrics and traces of mailboxes. Does nothing where a trait is disabled or no backend
/// was bootstrapped.
///
/// docs/observability.md lists them. Names of mailboxes and contents of messages are never included.
final class MailInstruments: Sendable {
    private let backends: Backends
    #if MetricsSupport
        private let meters: MailMeters?
        private let listenerCount = Atomic(0)
    #endif
    /// Whether there is nothing to time and to trace.
    var isDisabled: Bool { backends.isDisabled }

    init(_ instruments: RedisInstruments) {
        backends = Backends(instruments)
        #if MetricsSupport
            meters = backends.metrics.map { MailMeters($0) }
        #endif
    }

    // MARK: Sending and listening

    /// Measures a send.
    func sending(
        _ body: () async throws(QueueListenError) -> Receipt
    ) async throws(QueueListenError) -> Receipt {
        if isDisabled { return try await body() }
        let start = ContinuousClock.now
        #if MetricsSupport
            meters?.sends.increment()
        #endif
        let result = await traced("queuelisten send") { () async -> Result<Receipt, QueueListenError> in
            do throws(QueueListenError) { return .success(try await body()) } catch { return .failure(error) }
        }
        #if MetricsSupport
            if case .success = result {
                meters?.receipts.increment()
                meters?.sending.recordNanoseconds((ContinuousClock.now - start).nanoseconds)
            }
        #endif
        return try result.get()
    }

    /// Measures a call of `listen`.
    ///
    /// - Parameter body: runs the call, and sets its answer.
    func listening(_ call: PendingListen, _ body: () async -> Void) async {
        let start = ContinuousClock.now
        count(1)
        _ = await traced("queuelisten listen") { () async -> Result<Delivery, QueueListenError> in
            await body()
            return call.result!
        }
        count(-1)
        #if MetricsSupport
            guard let meters, case .success(let delivery)? = call.result else { return }
            meters.listening.recordNanoseconds((ContinuousClock.now - start).nanoseconds)
            switch delivery.status {
            case .messages(let messages): meters.deliveries.increment(by: messages.count)
            case .reset, .forked, .truncated: meters.gaps.increment()
            case .timedOut, .superseded: break
            }
        #endif
    }

    private func count(_ change: Int) {
        #if MetricsSupport
            meters?.listeners.record(listenerCount.wrappingAdd(change, ordering: .relaxed).newValue)
        #endif
    }

    private func traced<Value>(
        _ name: String, _ body: () async -> Result<Value, QueueListenError>
    ) async -> Result<Value, QueueListenError> {
        await backends.traced(name, body) { $0.code.description }
    }

    /// Whether logs are received.
    var hasLogger: Bool { backends.hasLogger }

    /// Records that calls without a timeout wait for long, because they cannot read their mailboxes.
    func cannotRead(_ reason: String, waiting: Int) {
        #if LoggingSupport
            backends.logger?.warning(
                "calls without a timeout still wait, because mailboxes cannot be read",
                metadata: ["queuelisten_reason": "\(reason)", "queuelisten_waiting": "\(waiting)"])
        #endif
    }

    // MARK: Repairs

    /// Records that messages which Redis had lost were sent again.
    func repaired(_ count: Int) {
        #if MetricsSupport
            meters?.repaired.increment(by: count)
        #endif
        #if LoggingSupport
            backends.logger?.notice(
                "sent messages again that Redis had lost", metadata: ["queuelisten_messages": "\(count)"])
        #endif
    }

    /// Records that acknowledgements which Redis had lost were repeated.
    func acknowledgedAgain(_ count: Int) {
        guard count > 0 else { return }
        #if MetricsSupport
            meters?.acknowledgedAgain.increment(by: count)
        #endif
        #if LoggingSupport
            backends.logger?.notice(
                "acknowledged messages again for devices whose acknowledgements Redis had lost",
                metadata: ["queuelisten_devices": "\(count)"])
        #endif
    }

    // MARK: Sends that are due later

    /// Records that a send was scheduled.
    func scheduled() {
        #if MetricsSupport
            meters?.scheduled.increment()
        #endif
    }

    /// Records that a scheduled send was carried out.
    func carriedOut() {
        #if MetricsSupport
            meters?.carriedOut.increment()
        #endif
    }

    /// Records that an occurrence of a recurring send was too late to be sent.
    func missedOccurrence() {
        #if MetricsSupport
            meters?.missedOccurrences.increment()
        #endif
        #if LoggingSupport
            backends.logger?.notice("missed an occurrence of a recurring send")
        #endif
    }

    /// Records that a scheduled send could not be carried out now and will be tried again.
    func cannotCarryOut(_ error: QueueListenError) {
        #if LoggingSupport
            backends.logger?.warning(
                "cannot carry out a scheduled send, will try again",
                metadata: ["queuelisten_error": "\(error.code)"])
        #endif
    }

    /// Records that sends were scheduled or cancelled again, because Redis had lost that.
    func scheduledAgain(_ count: Int) {
        #if MetricsSupport
            meters?.scheduledAgain.increment(by: count)
        #endif
        #if LoggingSupport
            backends.logger?.notice(
                "scheduled or cancelled sends again that Redis had lost", metadata: ["queuelisten_sends": "\(count)"])
        #endif
    }

    // MARK: Receivers

    /// Records that the handler of a message has failed, or that there is none.
    func handlerFailed(attempt: Int) {
        #if MetricsSupport
            meters?.handlerFailures.increment()
        #endif
        #if LoggingSupport
            backends.logger?.warning(
                "a message was not handled", metadata: ["queuelisten_attempt": "\(attempt)"])
        #endif
    }

    // MARK: Workers

    /// Measures the handler of a job.
    ///
    /// - Returns: what it has thrown.
    func working(_ body: () async throws -> Void) async -> (any Error)? {
        let start = ContinuousClock.now
        let result = await backends.traced("queuelisten job") { () async -> Result<Void, HandlerError> in
            do {
                try await body()
                return .success(())
            } catch { return .failure(HandlerError(error: error)) }
        } kind: {
            "\(type(of: $0.error))"
        }
        #if MetricsSupport
            meters?.working.recordNanoseconds((ContinuousClock.now - start).nanoseconds)
        #endif
        guard case .failure(let failure) = result else { return nil }
        return failure.error
    }

    private struct HandlerError: Error { var error: any Error }

    /// Records what has become of a job.
    func jobEnded(_ outcome: JobEnd.Outcome, attempt: Int) {
        #if MetricsSupport
            switch outcome {
            case .done, .hadEffect: meters?.jobsDone.increment()
            case .retry: meters?.jobFailures.increment()
            case .giveUp:
                meters?.jobFailures.increment()
                meters?.jobsFailed.increment()
            case .return: break
            }
        #endif
        #if LoggingSupport
            switch outcome {
            case .retry:
                backends.logger?.notice(
                    "a job has failed, will be tried again", metadata: ["queuelisten_attempt": "\(attempt)"])
            case .giveUp:
                backends.logger?.warning(
                    "a job has failed for good", metadata: ["queuelisten_attempt": "\(attempt)"])
            case .done, .hadEffect, .return: break
            }
        #endif
    }

    /// Records that a worker has lost jobs, whose handlers are cancelled: others may run them now.
    func lostJobs(_ count: Int) {
        guard count > 0 else { return }
        #if MetricsSupport
            meters?.jobsLost.increment(by: count)
        #endif
        #if LoggingSupport
            backends.logger?.warning(
                "cancelled jobs that other workers may run now", metadata: ["queuelisten_jobs": "\(count)"])
        #endif
    }

    // MARK: Cross-partition sends of other processes

    /// Records that a send was finished for another process.
    func tookOver() {
        #if MetricsSupport
            meters?.takenOver.increment()
        #endif
        #if LoggingSupport
            backends.logger?.info("finished a cross-partition send that its sender left unfinished")
        #endif
    }

    /// Records that a send was given up, because it could not be finished within 29 days.
    func gaveUp(_ kind: RecordedSend.Kind) {
        #if MetricsSupport
            meters?.givenUp.increment()
        #endif
        #if LoggingSupport
            switch kind {
            case .acrossPartitions:
                backends.logger?.error(
                    "gave up a cross-partition send that could not be finished: some recipients do not have it")
            case .later:
                backends.logger?.error(
                    "gave up a scheduled send that could not be carried out: recipients may not have it")
            }
        #endif
    }

    /// Records that a send could not be finished now and will be retried.
    func recordRetry(_ error: QueueListenError) {
        #if LoggingSupport
            backends.logger?.warning(
                "cannot finish a cross-partition send, will try again",
                metadata: ["queuelisten_error": "\(error.code)"])
        #endif
    }
}

#if MetricsSupport
    /// Created once.
    private struct MailMeters: Sendable {
        let sends: Counter
        let receipts: Counter
        let sending: CoreMetrics.Timer
        let deliveries: Counter
        let listening: CoreMetrics.Timer
        let listeners: Gauge
        let gaps: Counter
        let repaired: Counter
        let acknowledgedAgain: Counter
        let handlerFailures: Counter
        let working: CoreMetrics.Timer
        let jobsDone: Counter
        let jobFailures: Counter
        let jobsFailed: Counter
        let jobsLost: Counter
        let scheduled: Counter
        let carriedOut: Counter
        let missedOccurrences: Counter
        let scheduledAgain: Counter
        let takenOver: Counter
        let givenUp: Counter

        init(_ factory: any MetricsFactory) {
            sends = Counter(label: "queuelisten_sends", factory: factory)
            receipts = Counter(label: "queuelisten_receipts", factory: factory)
            sending = CoreMetrics.Timer(label: "queuelisten_send_duration", factory: factory)
            deliveries = Counter(label: "queuelisten_deliveries", factory: factory)
            listening = CoreMetrics.Timer(label: "queuelisten_listen_duration", factory: factory)
            listeners = Gauge(label: "queuelisten_listeners", factory: factory)
            gaps = Counter(label: "queuelisten_gaps", factory: factory)
            repaired = Counter(label: "queuelisten_repaired", factory: factory)
            acknowledgedAgain = Counter(label: "queuelisten_acknowledged_again", factory: factory)
            handlerFailures = Counter(label: "queuelisten_handler_failures", factory: factory)
            working = CoreMetrics.Timer(label: "queuelisten_job_duration", factory: factory)
            jobsDone = Counter(label: "queuelisten_jobs_done", factory: factory)
            jobFailures = Counter(label: "queuelisten_job_failures", factory: factory)
            jobsFailed = Counter(label: "queuelisten_jobs_failed", factory: factory)
            jobsLost = Counter(label: "queuelisten_jobs_lost", factory: factory)
            scheduled = Counter(label: "queuelisten_scheduled", factory: factory)
            carriedOut = Counter(label: "queuelisten_carried_out", factory: factory)
            missedOccurrences = Counter(label: "queuelisten_missed_occurrences", factory: factory)
            scheduledAgain = Counter(label: "queuelisten_scheduled_again", factory: factory)
            takenOver = Counter(label: "queuelisten_taken_over", factory: factory)
            givenUp = Counter(label: "queuelisten_given_up", factory: factory)
        }
    }
#endif
