import CoordinationBase
public import Hiredis

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
///   subscription connection and one channel. Notifications may be lost: without them
///   everything works, with more delay.
///
/// **Limits**
/// - A message that Redis has confirmed and lost is sent again by the post office that sent it, if its
///   process still lives and remembers it (``PostOfficeConfiguration/repairTime``). Otherwise the loss is
///   detected when the post office sends to that mailbox again; then its readers are notified. Use
///   `.replicated` or an append-only file where that is too late.
/// - A process that dies between acting on a message and acknowledging it receives the message
///   again, under the same id.
public final class PostOffice: Sendable {
    /// The namespace that contains the post office's mailboxes.
    public let namespace: String
    /// The settings of the post office.
    public let configuration: PostOfficeConfiguration
    let redis: any Redis
    let keyspace: Namespace
    let partitions: [Partition]
    private let listeners: [Listeners]
    private let senders: [Sender]
    private let crossPartitionSender: CrossPartitionSender
    let laterSender: LaterSender
    let instruments: MailInstruments
    let clock: MonotonicClock
    let answerDesk = AnswerDesk()
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
        let keyspace = Namespace.ofMailboxes(namespace, partitions: configuration.partitions)
        self.keyspace = keyspace
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
            Partition(keyspace, number: $0, limits: configuration.limits, process: process)
        }
        self.partitions = partitions
        let eventLoopRedis = redis.onEventLoop()
        let instruments = MailInstruments(configuration.instruments)
        self.instruments = instruments
        listeners = partitions.map {
            Listeners(
                redis: eventLoopRedis, partition: $0, settings: settings, configuration: configuration, clock: clock,
                instruments: instruments)
        }
        let senders = partitions.map {
            Sender(
                redis: redis, connections: eventLoopRedis, partition: $0, configuration: configuration, clock: clock,
                instruments: instruments)
        }
        self.senders = senders
        let sends = RecordedSends(
            redis: redis, keyspace: keyspace, partitions: partitions, senders: senders, configuration: configuration,
            clock: clock, instruments: instruments)
        crossPartitionSender = CrossPartitionSender(
            redis: redis, partitions: partitions, sends: sends, configuration: configuration, clock: clock,
            instruments: instruments)
        let books = partitions.map {
            LaterBook(
                home: $0, redis: redis, connections: eventLoopRedis, configuration: configuration, clock: clock,
                instruments: instruments)
        }
        laterSender = LaterSender(
            books: books, keyspace: keyspace, sends: sends, configuration: configuration, clock: clock,
            instruments: instruments)
    }

    // MARK: Run

    /// Runs until the task is cancelled or a graceful shutdown begins, then ends all calls of
    /// `listen` with `.stopped`. Call it once: a second call traps.
    ///
    /// While it runs, and only then, the post office carries out sends that are due later, of all
    /// processes, and finishes cross-partition sends that other processes, or calls that threw, have
    /// left unfinished. Everything else works before `run()` is
    /// called, `send` and `listen` included. After it has ended, `listen` throws `.stopped`, as do
    /// the sequences and receivers that use it; sends and all other operations still work.
    ///
    /// If the process dies, any running post office of the namespace finishes its recorded
    /// cross-partition sends. Messages that its readers have not acknowledged are delivered again.
    public func run() async {
        await service.run([crossPartitionSender.run, laterSender.run])
        for listeners in listeners { await listeners.stop() }
    }

    // MARK: Send

    /// Sends messages, in this order, to all recipients: each recipient gets all of them, or no
    /// recipient gets any.
    ///
    /// With all retries, it takes at most ``PostOfficeConfiguration/callTimeout``. These cases take
    /// longer:
    /// - `.replicated` and `.fsynced` need a dedicated connection, which may have to be made, and up
    ///   to 500 ms more, across partitions 1 s. `.fsynced` also checks the server first.
    /// - A cross-partition send then records that it is finished, which may take another
    ///   `callTimeout` and the client's `commandTimeout`.
    ///
    /// If it throws, the error's ``QueueListenError/mayHaveRun`` says whether the recipients may have
    /// the messages. A cancelled call throws `.cancelled` immediately; a request that was already
    /// sent still takes effect. If the process dies, all recipients have the messages or none has
    /// them; a cross-partition send that was recorded is finished by any running post office.
    ///
    /// - Parameters:
    ///   - messages: 1 to 768 messages. The body of each has at most
    ///     ``PostOfficeConfiguration/maxMessageBytes``. All messages together, with types, headers and
    ///     collapse keys, times the number of recipients, have at most 1 MiB.
    ///   - recipients: the names of 1 to 256 mailboxes, each 1 to 512 bytes of UTF-8 without
    ///     control characters and braces. A mailbox that does not exist is created. A recipient
    ///     that is named twice gets the messages once. Messages times recipients are at most
    ///     768, and at most 64 for messages with a collapse key.
    ///   - id: identifies the send, so that it can be repeated safely: within
    ///     ``PostOfficeConfiguration/sendIDLifetime``, a call with the same id, messages and
    ///     recipients has no second effect and returns the indices of the first call; a finished
    ///     cross-partition send throws `.notDurable` if the call requires more than `.memory`. A
    ///     call with the same id that differs in anything that is stored, of a message its body,
    ///     type, headers, time to live or collapse key, throws `.conflict`. 1 to 256 bytes of UTF-8
    ///     without control characters and braces. With `nil` the call generates an id, and uses it
    ///     for its own retries.
    ///   - durability: how durable the messages must be before the call returns.
    /// - Throws:
    ///   - `.invalidArgument`, `.mailboxFull`, `.outOfMemory`, `.conflict`, `.wrongType`,
    ///     `.notPermitted`, `.notConnected`: no recipient has received anything. If `mayHaveRun` is
    ///     true, an earlier attempt of this call, whose connection broke, may still arrive and reach
    ///     all recipients.
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
    /// Duration and cancellation are those of the send of the same messages to all recipients.
    ///
    /// - Parameters:
    ///   - messages: for each of 1 to 256 recipients, 1 or more messages in order; at most 768
    ///     messages for all recipients together. The other limits are those of the send of the same
    ///     messages to all recipients.
    ///   - id: as for the send of the same messages to all recipients.
    ///   - durability: how durable the messages must be before the call returns.
    /// - Throws: the codes of the send of the same messages to all recipients.
    @discardableResult
    public func send(
        _ messages: [String: [Message]], id: String? = nil, durability: Durability = .memory
    ) async throws(QueueListenError) -> Receipt {
        try await send(SendRequest(messages, maxMessageBytes: configuration.maxMessageBytes), id: id, durability)
    }

    /// Sends a message to all recipients or to none.
    ///
    /// Limits, duration, cancellation and errors are those of the send of several messages.
    @discardableResult
    public func send(
        _ message: Message, to recipients: String..., id: String? = nil, durability: Durability = .memory
    ) async throws(QueueListenError) -> Receipt {
        try await send([message], to: recipients, id: id, durability: durability)
    }

    /// Sends a text to all recipients or to none.
    ///
    /// Limits, duration, cancellation and errors are those of the send of several messages.
    @discardableResult
    public func send(
        _ text: String, to recipients: String..., id: String? = nil, durability: Durability = .memory
    ) async throws(QueueListenError) -> Receipt {
        try await send([Message(text: text)], to: recipients, id: id, durability: durability)
    }

    /// Sends a message to all recipients or to none.
    ///
    /// Limits, duration, cancellation and errors are those of the send of several messages.
    @discardableResult
    public func send(
        _ message: Message, to recipients: [String], id: String? = nil, durability: Durability = .memory
    ) async throws(QueueListenError) -> Receipt {
        try await send([message], to: recipients, id: id, durability: durability)
    }

    /// Sends a text to all recipients or to none.
    ///
    /// Limits, duration, cancellation and errors are those of the send of several messages.
    @discardableResult
    public func send(
        _ text: String, to recipients: [String], id: String? = nil, durability: Durability = .memory
    ) async throws(QueueListenError) -> Receipt {
        try await send([Message(text: text)], to: recipients, id: id, durability: durability)
    }

    private func send(
        _ request: SendRequest, id: String?, _ durability: Durability
    ) async throws(QueueListenError) -> Receipt {
        try Self.validate(id, durability)
        let homes = Set(request.recipients.map { keyspace.partition(of: $0) })
        do {
            return try await instruments.sending { () async throws(QueueListenError) in
                if homes.count == 1, let home = homes.first {
                    return try await senders[home].send(request, id: id, durability)
                }
                return try await crossPartitionSender.send(request, id: id, durability)
            }
        } catch { throw Self.described(error, request) }
    }

    /// - Throws: `.invalidArgument`.
    static func validate(_ id: String?, _ durability: Durability) throws(QueueListenError) {
        if let id { try MailName.validate(id, "send id", maxBytes: 256) }
        if case .replicated(let count) = durability, !(1...1000).contains(count) {
            throw QueueListenError(
                .invalidArgument, "durability is .replicated(\(count)), expected 1 to 1,000 replicas")
        }
    }

    /// Returns the error with the recipients in its message. An error whose message already says
    /// what happened to the send is returned unchanged.
    static func described(_ error: QueueListenError, _ request: SendRequest) -> QueueListenError {
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
        let home = keyspace.partition(of: name)
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
/// When the task is cancelled, the post office still runs until `body` has returned. For the death
/// of the process see ``PostOffice/run()``.
///
/// - Parameters:
///   - redis: the client. It must run for as long as `body` does.
///   - namespace: see ``PostOffice/init(redis:namespace:configuration:)``.
///   - configuration: see ``PostOfficeConfiguration``.
///   - body: receives the post office. After it returns, calls of `listen` throw `.stopped`.
/// - Returns: the result of `body`.
/// - Throws: `.invalidArgument`, and whatever `body` throws.
@discardableResult
public func withPostOffice<Result>(
    redis: any Redis, namespace: String = "default", configuration: PostOfficeConfiguration = .init(),
    _ body: (PostOffice) async throws -> Result
) async throws -> Result {
    let office = try PostOffice(redis: redis, namespace: namespace, configuration: configuration)
    return try await whileRunning({ await office.run() }, { try await body(office) })
}
