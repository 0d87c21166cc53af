// What a listen must reply and delete, by what its device has acknowledged.
@testable import Hiredis
@testable import QueueListen

extension MailLedger {
    /// Compares a listen with the mailbox before and after it.
    mutating func checkListen(
        _ request: MailListen, _ name: String, _ before: MailRecord?, _ after: MailRecord?, _ reply: RESPValue,
        at now: Time, _ milliseconds: Int
    ) {
        guard let status = reply.array?.first?.string, let after else { return }
        if ["devices", "partitions", "foreign"].contains(status) { return }
        let (old, new) = (before?.device(request.device), after.device(request.device))
        if (status == "unknown") != (request.requiresDevice && old == nil) {
            fail("\(name): \(request) replied \(status), and the device is \(old == nil ? "not " : "")known")
        }
        if status == "unknown" { return }
        if let old, let new, new.seen <= old.seen, new.polls != old.polls || new.index != old.index {
            fail("\(name): \(request.device) was seen again, but at the same time")
        }
        forgetUnseen(name, request, before, after, milliseconds)
        var mine =
            boxes[name]!.devices[request.device] ?? Device(acknowledged: after.from, tag: after.fromTag, since: now)
        if let before, boxes[name]!.devices[request.device] == nil {
            mine = Device(acknowledged: before.from, tag: before.fromTag, since: now)
        }
        let isSuperseded = checkPoll(request, &mine, status, name)
        if isSuperseded {
            if before?.from != after.from { fail("\(name): a superseded poll has deleted messages") }
            return
        }
        let expected = expectedStatus(of: request, mine, before ?? after, after)
        if status != expected {
            fail("\(name): \(request) of \(mine) replied \(status), not \(expected): \(describe(before ?? after))")
        }
        checkPage(request, mine, status, name, after, reply)
        if status == "ok" {
            if request.index > mine.acknowledged, !request.readsAhead {
                (mine.acknowledged, mine.tag) = (request.index, request.tag)
            }
        } else if status != "truncated", request.phase < 2 {
            mine.acknowledged = -1
        }
        boxes[name]!.devices[request.device] = mine
        // What workers have taken is in the records, and not among the requests of devices.
        let taken = after.device("workers").map { [$0.index] } ?? []
        for entry in before?.entries ?? [] where entry.index <= after.from && entry.index > taken.first ?? 0 {
            // No worker has begun, or the mailbox has forgotten the workers.
            deletedJobs.insert(entry.text)
        }
        let others = boxes[name]!.devices.filter { $0.key != "workers" }
        let least = (others.values.map(\.acknowledged) + taken).min()!
        let cut = max(before?.from ?? after.from, least - (after.limits?.backlogCount ?? 0))
        if after.from > max(before?.from ?? after.from, least) {
            fail("\(name): \(request) has deleted up to \(after.from), acknowledged are \(acknowledged(name))")
        } else if after.from < cut, after.limits?.backlogCount ?? 0 == 0 {
            fail("\(name): \(request) has kept what is after \(after.from), acknowledged are \(acknowledged(name))")
        }
    }

    private func acknowledged(_ name: String) -> String {
        boxes[name]!.devices.sorted { $0.key < $1.key }.map { "\($0.key): \($0.value.acknowledged)" }.joined(
            separator: ", ")
    }

    private func describe(_ record: MailRecord) -> String {
        "epoch \(record.epoch), \(record.from) to \(record.last)"
    }

    /// The other devices that have not been seen for their time are forgotten, unless nothing changes in the mailbox.
    private mutating func forgetUnseen(
        _ name: String, _ request: MailListen, _ before: MailRecord?, _ after: MailRecord, _ now: Int
    ) {
        let ttl = before?.limits.map { $0.deviceTTL?.wholeMilliseconds ?? 0 } ?? request.deviceTTL
        for device in before?.devices ?? [] where ttl > 0 && device.name != request.device && device.seen + ttl <= now {
            if after.device(device.name) == nil { boxes[name]!.devices[device.name] = nil }
        }
    }

    /// The status that a listen must reply, which says whether messages are lost.
    private func expectedStatus(
        of request: MailListen, _ mine: Device, _ record: MailRecord, _ after: MailRecord
    ) -> String {
        var (index, tag) = (request.index, request.tag)
        if index < 0 {
            if mine.acknowledged < 0 { return "reset" }
            (index, tag) = (mine.acknowledged, mine.tag)
        } else if request.epoch != after.epoch {
            return "reset"
        }
        if index > record.last { return "forked" }
        if index < record.from { return "truncated" }
        return record.tag(of: index) == tag ? "ok" : "forked"
    }

    /// Checks that a page follows the position without a gap.
    private mutating func checkPage(
        _ request: MailListen, _ mine: Device, _ status: String, _ name: String, _ after: MailRecord, _ reply: RESPValue
    ) {
        let parts = reply.array ?? []
        var reader = ByteReader(parts.count > 1 ? parts[1].bytes ?? [] : [])
        guard let position = reader.cursor() else { return fail("\(name): the reply of listen has no position") }
        if status != "ok" {
            if parts.count > 2 || position.index != after.from || position.epoch != after.epoch {
                fail("\(name): after \(status) reading begins at \(position)")
            }
            return
        }
        let start = max(request.index < 0 ? mine.acknowledged : request.index, after.from)
        if position.index != start || position.tag != after.tag(of: start) {
            fail("\(name): \(request) reads after \(position.index), not after \(start)")
        }
        let wanted = min(request.maxMessages, after.last - start)
        let found = (parts.count - 2) / 2
        if found > wanted || found == 0 && wanted > 0 { fail("\(name): \(request) returned \(found) of \(wanted)") }
        for number in 0..<max(0, found) {
            guard let entry = MailEntry(parts[2 + 2 * number].bytes ?? [], parts[3 + 2 * number].bytes ?? []),
                entry == after.entry(start + 1 + number)
            else { return fail("\(name): \(request) returned another message at \(start + 1 + number)") }
        }
    }

    /// Checks which poll of a device goes on. Returns whether the reply ends this one.
    private mutating func checkPoll(
        _ request: MailListen, _ mine: inout Device, _ status: String, _ name: String
    ) -> Bool {
        let isSuperseded = status == "superseded"
        guard request.phase < 2 else {
            if isSuperseded { fail("\(name): \(request) was superseded") }
            return isSuperseded
        }
        let poll = request.poll
        let hasBegun = mine.begun.contains(poll)
        // Redis stores the latest polls of four processes; what is older may begin again.
        let recent = Set(mine.begun.suffix(4))
        if isSuperseded {
            if mine.current == poll { fail("\(name): the current poll \(poll) of \(request.device) was superseded") }
            if request.phase == 1, !hasBegun, !mine.begun.contains(where: { MailListen.isNewer($0, than: poll) }) {
                fail("\(name): the new poll \(poll) of \(request.device) was superseded")
            }
            return true
        }
        if hasBegun, mine.current != poll, recent.contains(poll) {
            fail("\(name): the poll \(poll) of \(request.device) goes on, but \(mine.current ?? "none") is newer")
        }
        if mine.current != poll {
            mine.current = poll
            mine.begun.removeAll { $0 == poll }
            mine.begun.append(poll)
        }
        return false
    }
}
