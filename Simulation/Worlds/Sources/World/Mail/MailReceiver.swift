// Receivers in a world: the real `Receiver`, with handlers that fail, dead letters, and cursors that are stored.
@testable import CoordinationBase
@testable import QueueListen

/// The mailbox that processes read with a ``Receiver``, one of them at a time, and what its handlers have seen.
///
/// `@unchecked`: a world is used by one thread.
final class Inbox: @unchecked Sendable {
    static let mailbox = "inbox"
    static let deadLetters = "dead letters"
    static let device = "worker"
    /// The process that receives.
    weak var owner: SimulatedProcess?
    /// The texts that a handler has handled.
    var handled: Set<String> = []
    /// The highest index whose cursor was stored.
    var stored = 0
    /// The number of gaps.
    var gaps = 0
}

/// Stores cursors in Redis, by the library's store, and remembers which were stored.
struct ObservedStore: CursorStore {
    let store: RedisCursorStore
    let inbox: Inbox

    func load() async throws -> Cursor? { try await store.load() }

    func save(_ cursor: Cursor) async throws {
        try await store.save(cursor)
        inbox.stored = max(inbox.stored, cursor.index)
    }
}

/// One run of a receiver.
///
/// `@unchecked`: a world is used by one thread.
final class ReceiverRun: @unchecked Sendable {
    private struct Failure: Error {}

    private let owner: MailProcess
    private unowned let world: World
    private let inbox: Inbox
    private let storesCursor: Bool
    private var handled: Set<String> = []
    /// The last message, until there is a gap.
    private var last: Cursor?

    init(_ owner: MailProcess, _ inbox: Inbox) {
        (self.owner, world, self.inbox) = (owner, owner.mail.world, inbox)
        storesCursor = owner.mail.storesCursor
    }

    /// Receives for some time.
    func run(for time: Time) async {
        guard let mailbox = try? owner.office.mailbox(Inbox.mailbox) else { return }
        inbox.owner = owner.process
        let store = ObservedStore(store: RedisCursorStore(redis: owner.client, key: "cursor"), inbox: inbox)
        var receiver = Receiver(
            mailbox, device: Inbox.device, store: storesCursor ? store : nil,
            onFailure: .deadLetter(to: Inbox.deadLetters, afterAttempts: 2, pause: .milliseconds(20)...(.seconds(1)))
        ) { [self] _ in
            inbox.gaps += 1
            last = nil
        }
        receiver.handleOthers { [self] message in try await handle(message) }
        let task = owner.mail.executor.begin { [self, receiver] in
            do { try await receiver.run() } catch { world.note("a receiver ends: \(error)") }
        }
        owner.keep(task)
        let process = owner.process
        world.after(time) { _ in process.run { _ in task.cancel() } }
        await task.value
        if inbox.owner === owner.process { inbox.owner = nil }
    }

    private func handle(_ message: ReceivedMessage) async throws {
        world.judge { $0.hasChecked() }
        // After the loss of the end of the mailbox, which has been received, other messages take its place.
        let items = owner.mail.ledger.stored[owner.mail.key(of: Inbox.mailbox)] ?? [:]
        if let last, message.index <= last.index, items[last.tag]?.isLost == false {
            fail("comes after \(last.index)", message)
        }
        await owner.pause(100...100_000)
        // Some messages fail always, some fail sometimes.
        if message.text.hasSuffix("7.0") || world.random.isOne(in: 8) { throw Failure() }
        if !handled.insert(message.text).inserted { fail("was handled twice", message) }
        last = message.cursor
        inbox.handled.insert(message.text)
    }

    private func fail(_ text: String, _ message: ReceivedMessage) {
        world.violation("message \(message.index) of the inbox, \"\(message.text)\", \(text)")
    }
}

extension MailWorld {
    /// Whether all messages of the inbox are handled and acknowledged.
    var isInboxDrained: Bool {
        guard let inbox, let box = ledger.boxes[key(of: Inbox.mailbox)], let record = box.record else { return true }
        if record.last == 0 { return true }
        return inbox.owner == nil && box.devices[Inbox.device].map { $0.acknowledged == record.last } ?? false
    }

    /// Every message was handled, or is a dead letter.
    func checkInbox() {
        guard let inbox else { return }
        let dead = ledger.texts[key(of: Inbox.deadLetters)] ?? [:]
        for (text, boxes, sender) in confirmed
        where boxes.contains(key(of: Inbox.mailbox)) && !mayBeLost(text, sender) {
            let tags = ledger.texts[key(of: Inbox.mailbox)]?[text] ?? []
            let items = tags.map { ledger.stored[key(of: Inbox.mailbox)]![$0]! }
            guard items.allSatisfy({ !$0.isLost && $0.entry.life == 0 }), inbox.gaps == 0 else { continue }
            if !inbox.handled.contains(text), dead[text] == nil {
                world.violation("the inbox has not handled \"\(text)\"")
            }
        }
    }
}
