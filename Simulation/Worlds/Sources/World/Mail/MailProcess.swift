// The post office of a process: the real one, on the simulated client.
@testable import CoordinationBase
@testable import Hiredis
@testable import QueueListen

/// The part of a process that uses mailboxes.
///
/// `@unchecked`: a world is used by one thread.
final class MailProcess: @unchecked Sendable {
    unowned let process: SimulatedProcess
    unowned let mail: MailWorld
    let client: SimulatedClient
    let office: PostOffice
    /// The last message in each mailbox that was confirmed to the process by the first answer to its request: its key, its
    /// tag, and when it was confirmed.
    var known: [String: (tag: UInt64, at: Time)] = [:]
    /// The number of sends under way.
    var sending = 0
    /// The numbers of polls that an exploration uses in place of the library's.
    var stablePolls: [UInt64: Double] = [:]
    private var tasks: [Task<Void, Never>] = []
    /// When the connections of the process had a fault last, or may still have one.
    private(set) var troubledAt: Time = 0

    init(of process: SimulatedProcess, in mail: MailWorld) throws {
        (self.process, self.mail) = (process, mail)
        client = SimulatedClient(of: process, mail.executor)
        office = try PostOffice(
            redis: client, namespace: mail.namespace.name, configuration: mail.configuration, clock: client.clock)
        tasks.append(mail.executor.begin { [office] in await office.run() })
    }

    /// Begins a task, for whose end the world waits.
    func begin(_ body: @escaping @Sendable () async -> Void) {
        process.tasks += 1
        let task = mail.executor.begin { [self] in
            await body()
            process.tasks -= 1
        }
        tasks.append(task)
    }

    /// Remembers a task that ends with the world.
    func keep(_ task: Task<Void, Never>) { tasks.append(task) }

    /// The connections have a fault.
    func isTroubled() { troubledAt = mail.world.now }

    /// Whether the connections have worked for a while.
    func isCalm(for time: Time) -> Bool {
        !process.isDead && process.isRunning && process.unreachableUntil + time < mail.world.now
            && troubledAt + time < mail.world.now
    }

    func cancel() {
        for task in tasks { task.cancel() }
        client.channels.end()
    }

    /// Waits in the process's time.
    func pause(_ range: ClosedRange<Time>) async {
        try? await client.sleep(.microseconds(mail.world.random.time(range)))
    }
}
