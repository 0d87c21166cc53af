#if canImport(FoundationEssentials)
    public import FoundationEssentials
#else
    public import Foundation
#endif

#if ServiceLifecycleSupport
    public import ServiceLifecycle
#endif

/// Runs the messages of a mailbox as jobs, with a handler for each type of message: see ``Mailbox/work(_:_:)``.
///
/// ```swift
/// var service = WorkerService(try office.mailbox("pictures"))
/// service.handle(Move.self, type: "move") { move, job in await game.play(move) }
/// service.handleOthers { job in try await resize(job.message) }
/// try await service.run()
/// ```
///
/// - A message whose type has no handler, or that cannot be decoded, fails for good at once.
/// - It is a service: list it behind the client and the post office, so that it ends first in a
///   graceful shutdown.
public struct WorkerService: Sendable {
    /// Runs a job. What follows when it throws is described at ``Mailbox/work(_:_:)``.
    public typealias Handler = @Sendable (Job) async throws -> Void

    private let mailbox: Mailbox
    private let configuration: WorkConfiguration
    private var table = HandlerTable<Job>()

    /// Creates a service without handlers. Nothing is sent before ``run()``.
    public init(_ mailbox: Mailbox, _ configuration: WorkConfiguration = .init()) {
        (self.mailbox, self.configuration) = (mailbox, configuration)
    }

    /// Sets the handler for the messages of a type, which is compared by its bytes. It replaces an earlier one.
    public mutating func handle(type: String, _ handler: @escaping Handler) { table.set(type, handler) }

    /// Sets the handler for the messages of a type, decoded from JSON. It replaces an earlier one.
    ///
    /// - Parameters:
    ///   - value: the type of the values.
    ///   - type: the messages' type, as in ``Message/init(json:type:headers:ttl:collapseKey:encoder:)``.
    ///   - decoder: configures the decoding, to match the encoder of the sender.
    public mutating func handle<Value: Decodable & Sendable>(
        _ value: Value.Type, type: String, decoder: JSONDecoder = JSONDecoder(),
        _ handler: @escaping @Sendable (Value, Job) async throws -> Void
    ) {
        handle(type: type) { job in
            let decoded: Value
            do { decoded = try job.message.decode(decoder: decoder) } catch { throw JobRejection("\(error)") }
            try await handler(decoded, job)
        }
    }

    /// Sets the handler for questions of a type, decoded from JSON, whose result is the answer, as JSON. It replaces an
    /// earlier handler of this type.
    ///
    /// - Parameters:
    ///   - value: the type of the questions' values.
    ///   - type: the messages' type, as in ``Message/init(json:type:headers:ttl:collapseKey:encoder:)``. The answers have
    ///     it too.
    ///   - decoder: configures the decoding, to match the encoder of who asks.
    ///   - encoder: configures the encoding of the answers.
    public mutating func answer<Value: Decodable & Sendable>(
        _ value: Value.Type, type: String, decoder: JSONDecoder = JSONDecoder(), encoder: JSONEncoder = JSONEncoder(),
        _ handler: @escaping @Sendable (Value, Job) async throws -> some Encodable & Sendable
    ) {
        handle(value, type: type, decoder: decoder) { value, job in
            let answer = try await handler(value, job)
            try await job.answer(with: Message(json: answer, type: type, encoder: encoder))
        }
    }

    /// Sets the handler for messages of all other types and without a type.
    public mutating func handleOthers(_ handler: @escaping Handler) { table.others = handler }

    /// Works until the task is cancelled or a graceful shutdown begins.
    ///
    /// - Throws: what ``Mailbox/work(_:_:)`` throws.
    public func run() async throws {
        try await mailbox.work(configuration) { [table, mailbox] job in
            guard let handler = table.handler(of: job.message) else {
                throw JobRejection(HandlerTable<Job>.missing(for: job.message, in: mailbox.name).message)
            }
            try await handler(job)
        }
    }
}

#if ServiceLifecycleSupport
    /// A graceful shutdown ends ``run()`` as described at ``Mailbox/work(_:_:)``.
    extension WorkerService: Service {}
#endif
