// The messages that one device of a mailbox has received.

/// A message as its sender has numbered it.
struct SentMessage: Hashable {
    /// The sender and the send, as in the call.
    var send: Substring
    /// The sender: its process and task.
    var sender: Substring
    var number: Int
    var part: Int

    /// - Parameter text: `PROCESS-SEND-PART`.
    init?(_ text: String) {
        let parts = text.split(separator: "-", omittingEmptySubsequences: false)
        guard parts.count == 3, let number = Int(parts[1]), let part = Int(parts[2]) else { return nil }
        (sender, self.number, self.part) = (parts[0], number, part)
        send = text[..<text.index(before: parts[2].startIndex)]
    }
}

/// The events of one device in order, and the faults in them.
///
/// Between two gaps the indices are contiguous, an index always has the same message, and each message has one index. A
/// new reader may receive again what the one before it has not acknowledged, and must not skip anything.
///
/// Around a failover the indices are not compared: senders send lost messages again, which get other indices, and readers
/// skip what they have received. Each message still comes once, and those of a sender in their order.
struct MailStream {
    struct Fault {
        var text: String
        var time: UInt64
        var isAfterKill: Bool
        /// The send whose messages came after later ones of the same sender; `nil` for another fault.
        var lateSend: String?
    }

    let name: String
    private(set) var faults: [Fault] = []
    private(set) var checks = 0
    private(set) var received: Set<String> = []
    private(set) var gaps: [UInt64] = []
    private(set) var isDrained = false
    /// When the processes that read were killed.
    private(set) var kills: [UInt64] = []

    private var process: Int?
    private var last: Int?
    private var newest = 0
    private var isFirst = true
    private var isNewReader = true
    private var isAfterKill = false
    private var messages: [Int: String] = [:]
    private var indices: [String: Int] = [:]
    private var highest: [Substring: (Int, Int)] = [:]
    /// What the present reader has received.
    private var own: Set<String> = []
    private let failovers: [ClosedRange<UInt64>]
    /// 10 s: how much later than a failover it may be recorded.
    private static let notice: UInt64 = 10_000_000_000

    /// - Parameter failovers: the times of each, until the deployment was healthy again.
    init(name: String, failovers: [ClosedRange<UInt64>] = []) { (self.name, self.failovers) = (name, failovers) }

    mutating func add(_ event: Event, kills killTimes: [Int: UInt64]) {
        switch event.kind {
        case .reads:
            (isNewReader, own) = (true, [])
            if let process, let kill = killTimes[process], kill <= event.time, process != event.process {
                isAfterKill = true
                kills.append(kill)
            }
            process = event.process
        case .gap:
            gaps.append(event.time)
            forget()
        case .got:
            guard let index = event.index, let message = event.message else { return }
            receive(index, message, event.time)
        case .drained: isDrained = true
        default: break
        }
    }

    private mutating func forget() {
        (last, newest, isFirst, isNewReader) = (nil, 0, false, false)
        (messages, indices, highest) = ([:], [:], [:])
    }

    private mutating func receive(_ index: Int, _ message: String, _ time: UInt64) {
        checks += 1
        let isAgain = !received.insert(message).inserted
        let latest = time + Self.notice
        if failovers.contains(where: { $0.lowerBound <= latest && latest <= $0.upperBound + Announcements.window }) {
            receiveAfterFailover(message, time, isAgain)
            return
        }
        own.insert(message)
        let before = faults.count
        if let last {
            if isNewReader ? index > last + 1 : index != last + 1 {
                fault("index \(index) after \(last)", time)
            }
        } else if isFirst, index != 1 {
            fault("begins with index \(index)", time)
        }
        if let other = messages[index], other != message {
            fault("index \(index) was \(other) and is \(message)", time)
        }
        if let other = indices[message], other != index {
            fault("\(message) has the indices \(other) and \(index)", time)
        }
        if messages[index] == nil, !isAgain, let sent = SentMessage(message) { compare(message, sent, time) }
        // One fault is reported once.
        if faults.count > before { forget() }
        (messages[index], indices[message]) = (message, index)
        // After a redelivery, reading goes on from there.
        (last, isFirst, isNewReader) = (index, false, false)
        // From here on the reader itself knows what it has received.
        if index > newest { isAfterKill = false }
        newest = max(newest, index)
    }

    private mutating func receiveAfterFailover(_ message: String, _ time: UInt64, _ isAgain: Bool) {
        if !own.insert(message).inserted { fault("\(message) comes twice", time) }
        if !isAgain, let sent = SentMessage(message) { compare(message, sent, time) }
        (last, newest, isFirst, isNewReader) = (nil, 0, false, false)
        (messages, indices) = ([:], [:])
    }

    /// Compares a message with the one before it of the same sender.
    private mutating func compare(_ message: String, _ sent: SentMessage, _ time: UInt64) {
        if let (number, part) = highest[sent.sender], (number, part) >= (sent.number, sent.part) {
            // Parts of one send are sent together.
            let lateSend = sent.number < number ? String(sent.send) : nil
            fault("\(message) after \(sent.sender)-\(number)-\(part)", time, lateSend: lateSend)
        }
        highest[sent.sender] = (sent.number, sent.part)
    }

    private mutating func fault(_ text: String, _ time: UInt64, lateSend: String? = nil) {
        faults.append(
            Fault(
                text: "\(name): \(text), without a gap", time: time, isAfterKill: isAfterKill, lateSend: lateSend))
    }
}
