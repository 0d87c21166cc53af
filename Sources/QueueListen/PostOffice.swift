// The process's part in sending and receiving messages.
public import Hiredis
import CoordinationBase

#if ServiceLifecycleSupport
    public import ServiceLifecycle
#endif

/// Sends messages to mailboxes, and opens them.
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
/// In a server, make one and run it with the other services, after the client and before what uses it.
///
/// **Guarantees**
/// - The messages of a mailbox have the indices 1, 2, 3 and so on, and are delivered in that order.
/// - A message whose send was confirmed is delivered, or its reader is told that messages were lost, as far as Redis itself
///   can know: see ``Receipt/durability`` for what a confirmation is worth.
/// - Nothing is deleted that its reader has not proven to have, unless the mailbox's limits say so; then the reader is told.
/// - A send reaches all its recipients or none, also when Redis is out of memory. With several
///   ``PostOfficeConfiguration/partitions``, one whose recipients are in several of them reaches all or none in the end,
///   whoever dies meanwhile; it is not seen everywhere in the same moment.
/// - A send whose answer is lost is sent again under its id and has one effect. An id of the caller's own makes that hold
///   across the death of the process too, for ``PostOfficeConfiguration/sendIDLifetime``.
/// - Listening costs no connection: all of the process's listeners share the client's one subscription connection, and one
///   channel. Wake-ups are hints; without them everything works, only slower.
///
/// **Limits**
/// - A message that Redis has lost with its memory before any reader had it is noticed when the post office that sent it
///   sends to that mailbox again: then its readers are told. Use `.replicated` or an append-only file where that is too late.
/// - A process that dies between acting on a message and acknowledging it gets the message again, under the same id.
public final class PostOffice: Sendable {
    public let namespace: String
    public let configuration: PostOfficeConfiguration
    let redis: any Redis
    let place: Namespace
    let partitions: [Partition]
    private let listeners: [Listeners]
    private let senders: [Sender]
    private let crossPartitionSender: CrossPartitionSender
    let instruments: MailInstruments
    private let clock: MonotonicClock
    private let service = ServiceRun("PostOffice")

    /// - Parameters:
    ///   - namespace: sets this application's mailboxes apart from others' in the same Redis: 1 to 512 bytes of UTF-8 without
    ///     control characters, braces or colons. A `Coordinator` of the same name is not in the way.
    /// - Throws: `.invalidArgument`. Nothing is sent.
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
        // Who waits is not to be forgotten, nor his mailbox.
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

    /// Waits until the task is cancelled or a graceful shutdown begins, then ends all listening with `.stopped`. Meanwhile
    /// it finishes sends across partitions whose senders have died. Call it once.
    public func run() async {
        await service.run([crossPartitionSender.run])
        for listeners in listeners { await listeners.stop() }
    }

    // MARK: Send

    /// Sends messages, in this order, to all these recipients: to all or to none.
    ///
    /// - Parameters:
    ///   - messages: 1 to 1,000, together at most 64 MiB.
    ///   - recipients: 1 to 256 names of mailboxes, each 1 to 512 bytes of UTF-8 without control characters or braces. A
    ///     mailbox that is not there is made. One that is named twice gets the messages once.
    ///   - id: makes sending the same again harmless: within ``PostOfficeConfiguration/sendIDLifetime`` the first receipt is
    ///     returned. 1 to 256 bytes. `nil`: one is made, under which the call itself repeats what gets no answer.
    ///   - durability: what is waited for before this returns.
    /// - Throws: `.invalidArgument`, `.mailboxFull`, `.outOfMemory`, `.conflict`, `.wrongType`: nobody has got anything.
    ///   `.unsupported`: the server cannot tell this durability, and nothing was sent. `.connectionLost`, `.cancelled`: with
    ///   `mayHaveRun` all or nobody has, or will. `.notDurable`: all have or will, but the durability was not reached.
    ///   `.unfinished`: a send across partitions is written down; all will have it, and some may already. If the process
    ///   dies, all have it or nobody, or will: any post office that runs finishes what was begun.
    @discardableResult
    public func send(
        _ messages: [Message], to recipients: [String], id: String? = nil, durability: Durability = .memory
    ) async throws(QueueListenError) -> Receipt {
        try await send(
            SendRequest(messages, to: recipients, largest: configuration.maxMessageBytes), id: id, durability)
    }

    /// Sends each recipient messages of its own: to all or to none.
    @discardableResult
    public func send(
        _ messages: [String: [Message]], id: String? = nil, durability: Durability = .memory
    ) async throws(QueueListenError) -> Receipt {
        try await send(SendRequest(messages, largest: configuration.maxMessageBytes), id: id, durability)
    }

    /// Sends a message to all these recipients.
    @discardableResult
    public func send(
        _ message: Message, to recipients: String..., id: String? = nil, durability: Durability = .memory
    ) async throws(QueueListenError) -> Receipt {
        try await send([message], to: recipients, id: id, durability: durability)
    }

    /// Sends a text to all these recipients.
    @discardableResult
    public func send(
        _ text: String, to recipients: String..., id: String? = nil, durability: Durability = .memory
    ) async throws(QueueListenError) -> Receipt {
        try await send([Message(text)], to: recipients, id: id, durability: durability)
    }

    private func send(
        _ order: SendRequest, id: String?, _ durability: Durability
    ) async throws(QueueListenError) -> Receipt {
        if let id { try MailName.validate(id, "send id", longest: 256) }
        if case .replicated(let count) = durability, !(1...1000).contains(count) {
            throw QueueListenError(.invalidArgument, "\(count) replicas, expected 1 to 1,000")
        }
        let homes = Set(order.recipients.map { place.partition(of: $0) })
        return try await instruments.sending { () async throws(QueueListenError) in
            if homes.count == 1, let home = homes.first {
                return try await senders[home].send(order, id: id, durability)
            }
            return try await crossPartitionSender.send(order, id: id, durability)
        }
    }

    // MARK: Mailboxes

    /// A mailbox, whether it is there already or not.
    ///
    /// - Parameter name: 1 to 512 bytes of UTF-8 without control characters or braces.
    /// - Throws: `.invalidArgument`. Nothing is sent.
    public func mailbox(_ name: String) throws(QueueListenError) -> Mailbox {
        try MailName.validate(name)
        let home = place.partition(of: name)
        return Mailbox(name: name, office: self, partition: partitions[home], listeners: listeners[home])
    }
}

#if ServiceLifecycleSupport
    extension PostOffice: Service {}
#endif

/// Makes a post office, runs it while `body` runs, and ends all listening.
public func withPostOffice<Result>(
    redis: any Redis, namespace: String = "default", configuration: PostOfficeConfiguration = .init(),
    _ body: (PostOffice) async throws -> Result
) async throws -> Result {
    let office = try PostOffice(redis: redis, namespace: namespace, configuration: configuration)
    return try await whileRunning({ await office.run() }, { try await body(office) })
}
