// What an exploration needs of the mailboxes of a world.
import SimulatedRedis

@testable import CoordinationBase
@testable import Hiredis
@testable import QueueListen

extension MailWorld {
    /// Replaces the numbers of polls in a request, which the library takes from the clock of the machine, by numbers that
    /// are the same in each run.
    func withStablePolls(
        _ script: RedisScript, _ arguments: [RedisArgument], of process: SimulatedProcess
    ) -> [RedisArgument] {
        guard world.exploration != nil, let process = process.mail else { return arguments }
        // Where the requests have the number: docs/wire-format.md.
        if script === Scripts.listen { return [process.withStablePoll(arguments[0], at: 27)] + arguments.dropFirst() }
        if script !== Scripts.check { return arguments }
        return Array(arguments.prefix(3)) + arguments.dropFirst(3).map { process.withStablePoll($0, at: 24) }
    }
}

extension MailProcess {
    fileprivate func withStablePoll(_ argument: RedisArgument, at offset: Int) -> RedisArgument {
        var bytes = argument.byteList
        guard bytes.count >= offset + 8 else { return argument }
        let number = bytes[offset..<offset + 8].reversed().reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
        if number == 0 { return argument }
        let stable = stablePolls[number] ?? 1_600_000_000_000_000 + Double(stablePolls.count)
        stablePolls[number] = stable
        withUnsafeBytes(of: stable.bitPattern.littleEndian) { bytes.replaceSubrange(offset..<offset + 8, with: $0) }
        return .bytes(bytes)
    }
}

extension Exploration {
    /// The server carries out a request of mailboxes, which the judges of mailboxes see.
    func mailExecutes(_ arguments: [RedisArgument], _ reply: RESPValue, of process: SimulatedProcess?) {
        var fingerprint = Fingerprint()
        fingerprint.mix(mailHistory, arguments.map(\.byteList), String(describing: reply), process?.number)
        mailHistory = fingerprint.value
    }
}

extension SimulatedTask {
    /// Sends two messages to one mailbox, one after the other, each under an id.
    func sendsTwice() async {
        guard let owner = process.mail else { return }
        let sender = MailTask(taskNumber, of: owner)
        for number in 1...2 {
            await sender.send("send \(number)", [Message(text: "send \(number)")], to: ["box 0"], id: "id \(number)")
        }
    }

    /// Reads one mailbox until two messages have arrived, or none for a long time.
    func readsTwo() async {
        guard let owner = process.mail, let mail = world.mail, let seat = mail.seats.first,
            let mailbox = try? owner.office.mailbox(seat.mailbox)
        else { return }
        seat.owner = process
        var cursor: Cursor?
        // A promotion may lose what was read, and the sender sends it again.
        let mayBeSentAgain = (world.exploration?.budget.promotions ?? 0) > 0 || world.judge.losses > 0
        while mayBeSentAgain || seat.received.count < 2 {
            let state = mail.ledger.boxes[seat.key]?.devices[seat.device]
            let call = mail.begins(
                MailCall(
                    seat: seat, process: owner, after: cursor, began: world.now, beganAtServer: world.serverTime,
                    timeout: .seconds(30), acknowledged: state?.acknowledged, number: seat.calls.count, losses: 0))
            do throws(QueueListenError) {
                let delivery = try await mailbox.listen(
                    after: cursor, device: seat.device, limit: 1, timeout: .seconds(30))
                mail.returned(call, delivery)
                cursor = delivery.cursor
                if case .timedOut = delivery.status { return }
            } catch {
                mail.calls[call] = nil
                world.note("\(process.name) cannot read: \(error)")
                if owner.client.isOver { return }
            }
        }
    }
}
