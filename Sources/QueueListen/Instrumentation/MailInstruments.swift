// What mailboxes log, count and trace; empty where a trait is off or nothing was bootstrapped.
import Hiredis
import Synchronization

#if LoggingSupport
    import Logging
#endif
#if MetricsSupport
    import CoreMetrics
#endif

/// - Log lines carry keys that begin with `queuelisten_`; never a mailbox's name, nor anything of a message.
/// - Metrics: `queuelisten_sends`, `queuelisten_receipts` (sends that were confirmed), `queuelisten_send_duration` (of
///   these), `queuelisten_deliveries` (messages), `queuelisten_listen_duration` (waiting included), `queuelisten_listeners`
///   (gauge: who waits in `listen`), `queuelisten_gaps` (readers that were told of a loss), `queuelisten_taken_over` (sends
///   across partitions that were finished for others), `queuelisten_given_up`.
/// - Spans: `queuelisten send` and `queuelisten listen`.
final class MailInstruments: Sendable {
    private let backends: Backends
    #if MetricsSupport
        private let meters: MailMeters?
        private let listenerCount = Atomic(0)
    #endif
    /// Nothing to time and to trace.
    var isDisabled: Bool { backends.isDisabled }

    init(_ instruments: RedisInstruments) {
        backends = Backends(instruments)
        #if MetricsSupport
            meters = backends.metrics.map { MailMeters($0) }
        #endif
    }

    // MARK: Sending and listening

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

    /// - Parameter body: carries the poll out.
    func listening(_ poll: Poll, _ body: () async -> Void) async {
        let start = ContinuousClock.now
        count(1)
        _ = await traced("queuelisten listen") { () async -> Result<Delivery, QueueListenError> in
            await body()
            return poll.answer!.result
        }
        count(-1)
        #if MetricsSupport
            guard let meters, case .success(let delivery)? = poll.answer?.result else { return }
            meters.listening.recordNanoseconds((ContinuousClock.now - start).nanoseconds)
            switch delivery.status {
            case .messages(let messages): meters.deliveries.increment(by: messages.count)
            case .reset, .forked, .truncated: meters.gaps.increment()
            case .timedOut, .superseded: break
            }
        #endif
    }

    private func count(_ more: Int) {
        #if MetricsSupport
            meters?.listeners.record(listenerCount.wrappingAdd(more, ordering: .relaxed).newValue)
        #endif
    }

    private func traced<Value>(
        _ name: String, _ body: () async -> Result<Value, QueueListenError>
    ) async -> Result<Value, QueueListenError> {
        await backends.traced(name, body) { $0.code.description }
    }

    // MARK: Sends of others

    func tookOver() {
        #if MetricsSupport
            meters?.takenOver.increment()
        #endif
        #if LoggingSupport
            backends.logger?.info("a send across partitions whose sender has not finished it is finished")
        #endif
    }

    func gaveUp() {
        #if MetricsSupport
            meters?.givenUp.increment()
        #endif
        #if LoggingSupport
            backends.logger?.error(
                "a send across partitions could not be finished and is given up: some recipients lack it")
        #endif
    }

    /// - Parameter error: what keeps it from being finished.
    func isHeldUp(_ error: QueueListenError) {
        #if LoggingSupport
            backends.logger?.warning(
                "a send across partitions cannot be finished now, will try again",
                metadata: ["queuelisten_error": "\(error.code)"])
        #endif
    }
}

#if MetricsSupport
    /// Made once.
    private struct MailMeters: Sendable {
        let sends: Counter
        let receipts: Counter
        let sending: CoreMetrics.Timer
        let deliveries: Counter
        let listening: CoreMetrics.Timer
        let listeners: Gauge
        let gaps: Counter
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
            takenOver = Counter(label: "queuelisten_taken_over", factory: factory)
            givenUp = Counter(label: "queuelisten_given_up", factory: factory)
        }
    }
#endif
