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
            let acknowledgements = log.oldestFirst
            if acknowledgements.isEmpty { return true }
            let scripts = ConnectionScripts(
                redis: redis, connection: connection, clock: clock, timeout: callTimeout / 2,
                end: clock.now() + callTimeout)
            guard let missing = await findMissing(acknowledgements, needed, scripts) else { return false }
            var outcomes: [Outcome: [Acknowledgement]] = [:]
            for start in stride(from: 0, to: missing.count, by: Confirmations.minNeeded) {
                let part = missing[start..<min(start + Confirmations.minNeeded, missing.count)]
                for (acknowledgement, outcome) in await acknowledge(part, scripts) {
                    outcomes[outcome, default: []].append(acknowledgement)
                }
                if outcomes[.interrupted] != nil { break }
            }
            let refused = outcomes[.refused] ?? []
            confirmations.withLog { $0.remove(refused) }
            instruments.acknowledgedAgain(outcomes[.done]?.count ?? 0)
            return outcomes[.interrupted] == nil
        }
    }

    private func findMissing(
        _ acknowledgements: [Acknowledgement], _ needed: Int, _ scripts: ConnectionScripts
    ) async -> [Acknowledgement]? {
        let missing = await MissingConfirmations(among: acknowledgements, needed: needed) { part in
            let answer = await scripts.run(
                Scripts.acknowledged, keys: part.map { partition.keys.box($0.mailbox) },
                arguments: part.flatMap { [.integer($0.cursor.index), .string($0.device)] })
            guard case .reply(let reply) = answer, let numbers = reply.array?.compactMap(\.integer) else { return nil }
            let missing = Set(numbers)
            return part.indices.map { missing.contains($0 + 1) }
        }
        return missing.map { $0.positions.map { acknowledgements[$0] } }
    }

    private enum Outcome {
        case done
        /// The message is lost, and its copy has another place, or the device was forgotten.
        case refused
        /// It is looked for again on the next connection.
        case interrupted
    }

    private func acknowledge(
        _ acknowledgements: ArraySlice<Acknowledgement>, _ scripts: ConnectionScripts
    ) async -> [(Acknowledgement, Outcome)] {
        await withTaskGroup(of: (Acknowledgement, Outcome).self) { group in
            for acknowledgement in acknowledgements {
                // A device that was forgotten meanwhile must not become known by this.
                let arguments = partition.listenArguments(
                    acknowledgement.device, .acknowledges, requiresDevice: true, poll: 0, registrationLifetime: 0,
                    cursor: acknowledgement.cursor, maxMessages: 0, maxBytes: 1)
                let keys = partition.keys.scriptKeys(acknowledgement.mailbox)
                group.addTask { [partition] in
                    switch await scripts.run(Scripts.listen, keys: keys, arguments: arguments) {
                    case .interrupted: return (acknowledgement, .interrupted)
                    case .refused: return (acknowledgement, .refused)
                    case .reply(let reply):
                        let status = (try? ReadReply(reply, partitions: partition.total))?.status
                        return (acknowledgement, status == .ok ? .done : .refused)
                    }
                }
            }
            return await group.reduce(into: []) { $0.append($1) }
        }
    }
}
