// After a failover: acknowledges again what devices have acknowledged and Redis has lost.
//
// Otherwise a device that has read a message, and has proved it, would get the message again where it connects next.
import CoordinationBase
import Hiredis

/// The acknowledgements of the devices of this process in one partition.
///
/// On each new connection, before the client gives it to anybody else, it compares them with what Redis has.
final class AcknowledgementMemory: Sendable {
    typealias Confirmations = ConfirmationMemory<ConfirmedAcknowledgements>
    typealias Acknowledgement = ConfirmedAcknowledgements.Acknowledgement

    /// The number of acknowledgements that one script looks for, and that are repeated at once.
    private static let maxAtOnce = 256

    private let redis: any EventLoopRedis
    private let partition: Partition
    private let clock: MonotonicClock
    private let callTimeout: Duration
    private let instruments: MailInstruments
    private let confirmations: Confirmations

    init(
        redis: any EventLoopRedis, partition: Partition, configuration: PostOfficeConfiguration, clock: MonotonicClock,
        instruments: MailInstruments
    ) {
        (self.redis, self.partition, self.clock, self.instruments) = (redis, partition, clock, instruments)
        callTimeout = configuration.callTimeout
        confirmations = Confirmations(
            ConfirmedAcknowledgements(maxAge: configuration.repairTime), redis: redis, key: partition.keys.meta,
            clock: clock)
    }

    /// A call that acknowledges begins.
    func begin() -> Confirmations.Call { confirmations.begin(repair: { [weak self] in await self?.repair(on: $0) }) }

    /// A call has ended.
    func end() { confirmations.end() }

    /// Remembers what a device has acknowledged.
    ///
    /// - Returns: `false` if it must be acknowledged again: see ``ConfirmationMemory/confirm(_:_:)``.
    func confirm(_ acknowledgement: Acknowledgement, of call: Confirmations.Call) -> Bool {
        confirmations.confirm(call) { $0.record(acknowledgement, at: $1) }
    }

    // MARK: Repair

    private func repair(on connection: NewConnection) async {
        await confirmations.compare { log, needed in
            let acknowledgements = log.latestFirst
            if acknowledgements.isEmpty { return }
            let scripts = ConnectionScripts(
                redis: redis, connection: connection, clock: clock, timeout: callTimeout / 2,
                end: clock.now() + callTimeout)
            let missing = await findMissing(acknowledgements, needed, scripts)
            var (repaired, failed) = (0, [Acknowledgement]())
            for start in stride(from: 0, to: missing.count, by: Self.maxAtOnce) {
                let part = missing[start..<min(start + Self.maxAtOnce, missing.count)]
                for (acknowledgement, isRepeated) in await acknowledge(part, scripts) {
                    if isRepeated { repaired += 1 } else { failed.append(acknowledgement) }
                }
            }
            confirmations.withLog { [failed] in $0.remove(failed) }
            instruments.acknowledgedAgain(repaired)
        }
    }

    private func findMissing(
        _ acknowledgements: [Acknowledgement], _ needed: Int, _ scripts: ConnectionScripts
    ) async -> [Acknowledgement] {
        var missing: [Acknowledgement] = []
        var (start, left) = (0, needed)
        while start < acknowledgements.count, left > 0 {
            let part = acknowledgements[start..<min(start + Self.maxAtOnce, acknowledgements.count)]
            start = part.endIndex
            let answer = await scripts.run(
                Scripts.acknowledged, keys: part.map { partition.keys.box($0.mailbox) },
                arguments: part.flatMap { [.integer($0.cursor.index), .string($0.device)] })
            guard case .reply(let reply) = answer, let numbers = reply.array?.compactMap(\.integer) else { break }
            let found = Set(numbers)
            for (number, acknowledgement) in part.enumerated() {
                if found.contains(number + 1) {
                    missing.append(acknowledgement)
                    left = needed
                } else {
                    left -= 1
                }
            }
        }
        return missing
    }

    /// - Returns: for each, whether Redis has it now. It does not if the message is lost: its copy has another place.
    private func acknowledge(
        _ acknowledgements: ArraySlice<Acknowledgement>, _ scripts: ConnectionScripts
    ) async -> [(Acknowledgement, Bool)] {
        await withTaskGroup(of: (Acknowledgement, Bool).self) { group in
            for acknowledgement in acknowledgements {
                // A device that was forgotten meanwhile must not become known by this.
                let arguments = partition.listenArguments(
                    acknowledgement.device, .acknowledges, requiresDevice: true, poll: 0, registrationLifetime: 0,
                    cursor: acknowledgement.cursor, maxMessages: 0, maxBytes: 1)
                let keys = partition.keys.scriptKeys(acknowledgement.mailbox)
                group.addTask { [partition] in
                    guard case .reply(let reply) = await scripts.run(Scripts.listen, keys: keys, arguments: arguments),
                        let reply = try? ReadReply(reply, partitions: partition.total)
                    else { return (acknowledgement, false) }
                    return (acknowledgement, reply.status == .ok)
                }
            }
            return await group.reduce(into: []) { $0.append($1) }
        }
    }
}
