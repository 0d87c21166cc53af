// The messages of mailboxes.

/// Checks what the readers of mailboxes have received against what was sent.
///
/// A confirmed message that a reader has not received must have been announced to it as a gap. Two losses cannot be
/// announced: that of a message whose sender was killed before it sent to the mailbox again (docs/failure-model.md),
/// and one to a reader that was killed before it had recorded the gap.
struct MailCheck {
    var order = Finding(.order)
    var delivery = Finding(.delivery)
    var atomicity = Finding(.atomicity)
    private var streams: [String: [MailStream]] = [:]
    private let announcements: Announcements

    /// From the beginning of each failover until the deployment was healthy: meanwhile there may be others, for which nobody
    /// has asked.
    private static func failovers(_ events: [Event]) -> [ClosedRange<UInt64>] {
        var failovers: [ClosedRange<UInt64>] = []
        let changes = events.filter { $0.kind == .failover || $0.kind == .healthy }
        for event in changes.sorted(by: { $0.time < $1.time }) {
            if event.kind == .failover {
                failovers.append(event.time...event.time)
            } else if let last = failovers.popLast() {
                failovers.append(last.lowerBound...event.time)
            }
        }
        return failovers
    }

    init(_ events: [Event], _ announcements: Announcements) {
        self.announcements = announcements
        var all: [String: [String: MailStream]] = [:]
        let failovers = Self.failovers(events)
        for event in events {
            guard let mailbox = event.resource, let device = event.device else { continue }
            all[mailbox, default: [:]][
                device, default: MailStream(name: "\(mailbox), device \(device)", failovers: failovers)
            ]
            .add(event, kills: announcements.kills)
        }
        streams = all.mapValues { $0.sorted { $0.key < $1.key }.map(\.value) }
        let sends = Dictionary(
            events.filter { $0.kind == .call && $0.verb == .send }.map { ($0.message ?? "", $0) },
            uniquingKeysWith: { $1 })
        for stream in streams.sorted(by: { $0.key < $1.key }).flatMap(\.value) {
            order.checks += stream.checks
            for fault in stream.faults { order.add(notice(of: fault, in: stream, sends), fault.text) }
        }
        // Each device has one reader, and its predecessor was killed.
        for event in events where event.kind == .failed && event.note == "superseded" {
            order.add(.missing, "process \(event.process): its reader was superseded, without another one")
        }
        checkSends(events)
    }

    /// A part of a send to several recipients that was lost and reported as a gap is sent again by the process that
    /// finishes the send: then it comes late (docs/failure-model.md).
    private func notice(
        of fault: MailStream.Fault, in stream: MailStream, _ sends: [String: Event]
    ) -> Announcements.Notice {
        if let send = fault.lateSend.flatMap({ sends[$0] }), (send.recipients ?? []).count > 1,
            stream.gaps.contains(where: { $0 > send.time && $0 <= fault.time })
        {
            return .given
        }
        return fault.isAfterKill && announcements.hasAny(around: fault.time) ? .impossible : .missing
    }

    private mutating func checkSends(_ events: [Event]) {
        var ends: [Announcements.Claim: Event] = [:]
        // For each process and mailbox, when its last confirmed send began.
        var lastSends: [Int: [String: UInt64]] = [:]
        let calls = events.filter { $0.kind == .call && $0.verb == .send }
        for event in events where event.kind == .end && event.outcome == .ok {
            ends[Announcements.Claim(process: event.process, operation: event.operation ?? 0)] = event
        }
        func end(of call: Event) -> Event? {
            ends[Announcements.Claim(process: call.process, operation: call.operation ?? 0)]
        }
        for call in calls where end(of: call) != nil {
            for name in call.recipients ?? [] { lastSends[call.process, default: [:]][name] = call.time }
        }
        for call in calls {
            let confirmed = end(of: call)
            let names = call.recipients ?? []
            let parts = (0..<(call.count ?? 1)).map { "\(call.message ?? "")-\($0)" }
            let all = names.flatMap { name in streams[name, default: []].filter(\.isDrained).map { (name, $0) } }
            let isDelivered = all.contains { _, stream in parts.contains { stream.received.contains($0) } }
            if confirmed != nil { delivery.checks += parts.count * all.count }
            if isDelivered, names.count > 1 || parts.count > 1 { atomicity.checks += 1 }
            guard confirmed != nil || isDelivered else { continue }
            for (name, stream) in all {
                let missing = parts.filter { !stream.received.contains($0) }
                if missing.isEmpty { continue }
                let text = "\(stream.name): \(missing.joined(separator: ", ")) did not arrive"
                let isLast = lastSends[call.process]?[name] == call.time
                let notice = notice(of: call, confirmed, to: stream, isLast: isLast)
                if confirmed != nil {
                    delivery.add(notice, text + " and was confirmed")
                } else {
                    atomicity.add(notice, text + ", and others have received the send")
                }
            }
        }
    }

    private func notice(
        of call: Event, _ end: Event?, to stream: MailStream, isLast: Bool
    ) -> Announcements.Notice {
        let from = call.time
        let until = end?.time ?? call.time
        if stream.gaps.contains(where: { $0 >= from && ($0 <= until || Announcements.follows($0, until)) }) {
            return .given
        }
        let isSenderKilled = announcements.kills[call.process] != nil && (isLast || end == nil)
        let isReaderKilled = stream.kills.contains { Announcements.follows($0, from) }
        if isSenderKilled || isReaderKilled, announcements.hasAny(around: until) { return .impossible }
        return .missing
    }
}
