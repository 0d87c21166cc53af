// The operations on mailboxes.
import Foundation
import QueueListen
import Verification

/// Sends numbered messages to some mailboxes, and reads one mailbox.
struct MailWork {
    let work: Work
    /// The time for which a send is repeated after the process was asked to end.
    private static let lastAttempts = Duration.seconds(20)

    func send(_ choices: inout Choices) async {
        var names = Workload.mailboxes.filter { _ in Bool.random(using: &choices) }
        if names.isEmpty { names = [Workload.mailboxes[0]] }
        await send(to: names, count: Int.random(in: 1...2, using: &choices))
    }

    /// Sends once more to every mailbox: a mailbox that has lost messages tells its readers when their sender sends to
    /// it again.
    func sendLast() async { await send(to: Workload.mailboxes, count: 1) }

    /// Sends under an id of its own until Redis has confirmed it.
    private func send(to names: [String], count: Int) async {
        // The number of the operation also numbers the sends of this process.
        let number = work.recorder.nextOperation()
        let message = "\(work.recorder.process)-\(number)"
        let operation = work.begin(.send, nil, count: count, message: message, recipients: names)
        let messages = (0..<count).map { Message(text: "\(message)-\($0)") }
        var end: ContinuousClock.Instant?
        while true {
            do throws(QueueListenError) {
                try await work.office.send(messages, to: names, id: message)
                return work.end(operation, .ok)
            } catch {
                work.failed(error)
                let isRepeatable = error.mayHaveRun || [.notConnected, .unfinished].contains(error.code)
                if work.stop.isSet { end = end ?? .now + Self.lastAttempts }
                if !isRepeatable || end.map({ .now > $0 }) == true { return work.end(operation, .unknown) }
            }
            try? await Task.sleep(for: .milliseconds(50))
        }
    }

    /// Reads until the task is cancelled.
    func read() async {
        let (recorder, process) = (work.recorder, work.recorder.process)
        let (name, device) = (Workload.mailbox(ofSlot: work.slot), Workload.device(ofSlot: work.slot))
        var count = 0
        // A process that reads again says where it was. Without that, it could not be notified of a loss.
        var cursor: Cursor?
        while !Task.isCancelled {
            recorder.record(Event(.reads, at: Recorder.now, process: process, name, device: device))
            do {
                for try await event in try work.office.mailbox(name).messages(
                    after: cursor, device: device, limit: 20
                ) {
                    count += 1
                    switch event {
                    case .message(let message): cursor = message.cursor
                    // The sequence knows where reading continues, and a new one begins at what is acknowledged.
                    case .gap: cursor = nil
                    }
                    if work.defect == .dropsMessage, count.isMultiple(of: 20) { continue }
                    recorder.record(MailWork.event(event, name, device, process))
                }
            } catch {
                if Task.isCancelled { return }
                work.failed(error)
                try? await Task.sleep(for: .milliseconds(100))
            }
        }
    }

    /// The record of what a reader has received.
    static func event(_ event: MailboxEvent, _ name: String, _ device: String, _ process: Int) -> Event {
        switch event {
        case .message(let message):
            Event(
                .got, at: Recorder.now, process: process, name, index: message.index, device: device,
                message: message.text)
        case .gap(let gap):
            Event(.gap, at: Recorder.now, process: process, name, device: device, note: "\(gap)")
        }
    }
}
