public import Hiredis
import CoordinationBase

#if ServiceLifecycleSupport
    public import ServiceLifecycle
#endif

/// Sends messages to mailboxes and opens mailboxes.
///
/// ```swift
/// try await withPostOffice(redis: redis) { office in
///     try await office.send("hello", to: "alice", "bob")
///     for try await event in try office.mailbox("alice").messages() {
///         if case .message(let message) = event { print(message.text) }
///     }
/// }
/// ```
///
/// In a server, create one and run it with the other services, after the client and before the
/// services that use it.
///
/// **Guarantees**
/// - The messages of a mailbox have the indices 1, 2, 3 and so on, and are delivered in that order.
/// - A message whose send was confirmed is delivered, or its reader is notified that messages were
///   lost, as far as Redis itself can know: see ``Receipt/durability`` for what a confirmation is
///   worth.
/// - A message is deleted only when its readers have acknowledged it, or when the mailbox's limits
///   require it; in the latter case they are notified.
/// - A send reaches all of its recipients or none, also when Redis is out of memory. With several
///   ``PostOfficeConfiguration/partitions``, a send to recipients in more than one of them reaches
///   all or none eventually, whichever processes die meanwhile; it does not become visible
///   everywhere at the same moment.
/// - A send whose answer is lost is repeated under its id and has one effect. With an id of the
///   caller's own this holds across the death of the process too, for
///   ``PostOfficeConfiguration/sendIDLifetime``.
/// - Listening needs no connection of its own: all listeners of the process share the client's
///   subscription connection and one channel. Notifications are hints: without them everything
///   works, with more delay.
///
/// **Limits**
/// - A message that Redis has lost from its memory before any reader received it is detected when
///   the post office that sent it sends to that mailbox again; then its readers are notified. Use
///   `.replicated` or an append-only file where that is too late.
/// - A process that dies between acting on a message and acknowledging it receives the message
///   again, under the same id.
public final class PostOffice: Sendable {
    /// The namespace of its mailboxes.
    public let namespace: String
    /// The settings with which it was created.
    public let configuration: PostOfficeConfiguration
    let redis: any Redis
    let place: Namespace
    let partitions: [Partition]
    private let listeners: [Listeners]
    private let senders: [Sender]
    private let crossPartitionSender: CrossPartitionSender
    let instruments: MailInstruments
    let clock: MonotonicClock
    private let service = ServiceRun("PostOffice")

    /// Creates a post office. Nothing is sent.
    ///
    /// - Parameters:
    ///   - redis: the client, which must be running.
    ///   - namespace: separates this application's mailboxes from those of others in the same
    ///     Redis: 1 to 512 bytes of UTF-8 without control characters, braces and colons. A
    ///     `Coordinator` may use the same namespace.
    ///   - configuration: the settings.
    /// - Throws: `.invalidArgument`.
    public convenience init(
        redis: any Redis, namespace: String = "default", configuration: PostOfficeConfiguration = .init()
    ) throws(QueueListenError) {
        try self.init(redis: redis, namespace: namespace, configuration: configuration, clock: .continuous())
    }

    init(
        redis: any Redis, namespace: String, configuration: PostOfficeConfiguration, clock: MonotonicClock
    ) throws(QueueListenError) {
        try configuration.validate(namespace: namespace)
        self.redis = redis
        self.namespace = namespace
        self.configuration = configuration
        self.clock = clock
        let place = Namespace(namespace, partitions: configuration.partitions, prefix: "ql")
        self.place = place
        let process = UInt64.random(in: .min ... .max).hexadecimal
        var settings = ListenStateMachine.Settings()
        settings.usesWakeUps = configuration.usesWakeUps
        settings.pollInterval = configuration.pollInterval
        // Checks also renew the waiting devices and their mailboxes, so they must happen before these expire.
        settings.recheckInterval =
            [
                configuration.recheckInterval, configuration.limits.ttl.map { $0 / 2 },
                configuration.limits.deviceTTL.map { $0 / 4 },
            ].compactMap { $0 }.min() ?? configuration.recheckInterval
        settings.subscriptionLinger = configuration.subscriptionLinger
        let partitions = (0..<configuration.partitions).map {
            Partition(place, number: $0, limits: configuration.limits, process: process)
        }
        self.partitions = partitions
        let eventLoopRedis = redis.onEventLoop()
        listeners = partitions.map {
            Listeners(
                redis: eventLoopRedis, partition: $0, settings: settings, configuration: configuration, clock: clock)
        }
        let senders = partitions.map {
            Sender(redis: redis, partition: $0, configuration: configuration, clock: clock)
        }
        self.senders = senders
        instruments = MailInstruments(configuration.instruments)
        crossPartitionSender = CrossPartitionSender(
            redis: redis, place: place, partitions: partitions, senders: senders, configuration: configuration,
            clock: clock, instruments: instruments)
    }

    // MARK: Run

    /// Runs until the task is cancelled or a graceful shutdown begins, then ends all calls of
    /// `listen` with `.stopped`.
    ///
    /// While it runs, it finishes cross-partition sends whose senders have died. Call it once.
    public func run() async {
        await service.run([crossPartitionSender.run])
        for listeners in listeners { await listeners.stop() }
    }

    // MARK: Send

    /// Sends messages, in this order, to all recipients: each recipient gets all of them, or no
    /// recipient gets any.
    ///
    /// It takes at most ``PostOfficeConfiguration/callTimeout``, with all retries. If it throws,
    /// the error's ``QueueListenError/mayHaveRun`` says whether the recipients may have the
    /// messages. A cancelled call throws `.cancelled` immediately; a request that was already sent
    /// still takes effect. If the process dies, all recipients have the messages or none has them; a
    /// cross-partition send that was recorded is finished by any running post office.
    ///
    /// - Parameters:
    ///   - messages: 1 to 1,000, together at most 64 MiB.
    ///   - recipients: the names of 1 to 256 mailboxes, each 1 to 512 bytes of UTF-8 without
    ///     control characters and braces. A mailbox that does not exist is created. A recipient
    ///     that is named twice gets the messages once. Messages times recipients are at most
    ///     65,536.
    ///   - id: makes the send repeatable: within ``PostOfficeConfiguration/sendIDLifetime``, the
    ///     same send with the same id returns the first receipt. 1 to 256 bytes. `nil` generates an
    ///     id, under which this call repeats what gets no answer.
    ///   - durability: what must be reached before the send returns.
    /// - Throws:
    ///   - `.invalidArgument`, `.mailboxFull`, `.outOfMemory`, `.conflict`, `.wrongType`,
    ///     `.notPermitted`, `.notConnected`: no recipient has received anything.
    ///   - `.unsupported`: the server cannot confirm this durability, and nothing was sent.
    ///   - `.connectionLost`, `.cancelled`, `.stopped`, `.serverError`: if `mayHaveRun` is true,
    ///     either all recipients have or will get the messages, or none.
    ///   - `.notDurable`: all recipients have or will get the messages, but the durability was
    ///     not confirmed.
    ///   - `.unfinished`: a cross-partition send is recorded. All recipients will have the
    ///     messages, and some may already.
    @discardableResult
    public func send(
        _ messages: [Message], to recipients: [String], id: String? = nil, durability: Durability = .memory
    ) async throws(QueueListenError) -> Receipt {
        try await send(
            SendRequest(messages, to: recipients, maxMessageBytes: configuration.maxMessageBytes), id: id, durability)
    }

    /// Sends each recipient messages of its own: to all recipients or to none.
    ///
    /// - Parameter messages: for each recipient 1 or more messages. Limits, cancellation and errors
    ///   as for the send of the same messages to all recipients.
    @discardableResult
    public func send(
        _ messages: [String: [Message]], id: String? = nil, durability: Durability = .memory
    ) async throws(QueueListenError) -> Receipt {
        try await send(SendRequest(messages, maxMessageBytes: configuration.maxMessageBytes), id: id, durability)
    }

    /// Sends a message to all recipients or to none.
    ///
    /// Limits, cancellation and errors as for the send of several messages.
    @discardableResult
    public func send(
        _ message: Message, to recipients: String..., id: String? = nil, durability: Durability = .memory
    ) async throws(QueueListenError) -> Receipt {
        try await send([message], to: recipients, id: id, durability: durability)
    }

    /// Sends a text to all recipients or to none.
    ///
    /// Limits, cancellation and errors as for the send of several messages.
    @discardableResult
    public func send(
        _ text: String, to recipients: String..., id: String? = nil, durability: Durability = .memory
    ) async throws(QueueListenError) -> Receipt {
        try await send([Message(text: text)], to: recipients, id: id, durability: durability)
    }

    private func send(
        _ request: SendRequest, id: String?, _ durability: Durability
    ) async throws(QueueListenError) -> Receipt {
        if let id { try MailName.validate(id, "send id", maxBytes: 256) }
        if case .replicated(let count) = durability, !(1...1000).contains(count) {
            throw QueueListenError(
                .invalidArgument, "durability is .replicated(\(count)), expected 1 to 1,000 replicas")
        }
        let homes = Set(request.recipients.map { place.partition(of: $0) })
        do {
            return try await instruments.sending { () async throws(QueueListenError) in
                if homes.count == 1, let home = homes.first {
                    return try await senders[home].send(request, id: id, durability)
                }
                return try await crossPartitionSender.send(request, id: id, durability)
            }
        } catch { throw Self.described(error, request) }
    }

    /// The error with the recipients in its message, unless the message already says what happened
    /// to the send.
    private static func described(_ error: QueueListenError, _ request: SendRequest) -> QueueListenError {
        if [.mailboxFull, .notDurable, .unfinished].contains(error.code) { return error }
        let others = request.recipients.count - 1
        let recipients = "\"\(request.recipients[0])\"" + (others > 0 ? " and \(others) more" : "")
        return error.prefixed(
            error.mayHaveRun ? "no confirmation of the send to \(recipients)" : "cannot send to \(recipients)")
    }

    // MARK: Mailboxes

    /// Returns a mailbox, whether it exists or not. Nothing is sent.
    ///
    /// - Parameter name: 1 to 512 bytes of UTF-8 without control characters and braces.
    /// - Throws: `.invalidArgument`.
    public func mailbox(_ name: String) throws(QueueListenError) -> Mailbox {
        try MailName.validate(name)
        let home = place.partition(of: name)
        return Mailbox(name: name, office: self, partition: partitions[home], listeners: listeners[home])
    }
}

#if ServiceLifecycleSupport
    /// A graceful shutdown ends ``run()``, and with it all calls of `listen`.
    extension PostOffice: Service {}
#endif

/// Creates a post office and runs it while `body` runs; afterwards it ends all calls of `listen`
/// with `.stopped`.
///
/// When the task is cancelled, the post office still runs until `body` has returned.
///
/// - Throws: `.invalidArgument`, and whatever `body` throws.
@discardableResult
public func withPostOffice<Result>(
    redis: any Redis, namespace: String = "default", configuration: PostOfficeConfiguration = .init(),
    _ body: (PostOffice) async throws -> Result
) async throws -> Result {
    let office = try PostOffice(redis: redis, namespace: namespace, configuration: configuration)
    return try await whileRunning({ await office.run() }, { try await body(office) })
}
