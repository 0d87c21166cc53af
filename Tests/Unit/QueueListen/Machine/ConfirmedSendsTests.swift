// What a post office remembers of its confirmed sends, and for how long.
import CoordinationBase
import TestRandom
import Testing

@testable import QueueListen

@Suite("Confirmed sends") struct ConfirmedSendsTests {
    private func send(_ number: Int, at time: Duration, bytes: Int = 100) -> ConfirmedSend {
        let content = EncodedSend.Content(life: 0, collapseKey: "", envelope: Array(repeating: 0, count: bytes))
        return ConfirmedSend(
            encodedSend: EncodedSend(contents: [content], recipients: ["m"]),
            request: SendScriptRequest(
                sender: "s", number: number, place: number % 300, answerLifetime: .seconds(600), fingerprint: "0"),
            isInOrder: true, results: [(1, 1)], sentAt: time, confirmedAt: time, repeatableUntil: time + .seconds(300))
    }

    private func memory(_ maxBytes: Int, maxAge: Duration = .seconds(30)) -> ConfirmedSends {
        ConfirmedSends(
            maxBytes: maxBytes, maxAge: maxAge,
            placed: SendScriptRequest(sender: "s", answerLifetime: .seconds(600), fingerprint: "0"),
            answerLifetime: .seconds(300))
    }

    private func numbers(_ sends: ConfirmedSends) -> [Int] {
        var sends = sends
        return sends.takeAll().map(\.request.number)
    }

    @Test("they are kept for a time that is counted from the last one, and within the bytes")
    func bounds() {
        var sends = memory(10_000)
        for number in 0..<5 { sends.append(send(number, at: .seconds(number * 10))) }
        #expect(numbers(sends) == [1, 2, 3, 4])
        sends.append(send(5, at: .seconds(41), bytes: 9150))
        #expect(numbers(sends) == [3, 4, 5])
        sends.append(send(6, at: .seconds(41), bytes: 20_000))
        #expect(numbers(sends) == [3, 4, 5], "one that is too large displaces nothing")
        #expect(sends.takeAll().count == 3 && sends.isEmpty)
        var tiny = memory(300)
        tiny.append(send(1, at: .zero, bytes: 300))
        tiny.append(send(2, at: .zero, bytes: 50))
        #expect(tiny.takeAll().map(\.encodedSend.contents[0].envelope.count) == [50])
        var none = memory(10_000, maxAge: .zero)
        none.append(send(1, at: .zero))
        #expect(none.isEmpty)
    }

    @Test("each send of any form and size is kept unchanged, whatever came before it")
    func forms() throws {
        var generator = SplitMix(seed: 7)
        func random(_ range: ClosedRange<Int>) -> Int { Int.random(in: range, using: &generator) }
        func text(_ count: Int) -> String { String((0..<count).map { _ in "aä\0€".randomElement(using: &generator)! }) }
        var sends = memory(400_000)
        var all: [ConfirmedSend] = []
        for number in 1...3000 {
            let isLarge = random(0...40) == 0
            var new = send(number, at: .milliseconds(number))
            let isPlain = random(0...3) > 0
            let contents = (0..<(isPlain ? 1 : random(1...3))).map { _ in
                EncodedSend.Content(
                    life: random(0...1) * random(0...1 << 48), collapseKey: text(random(0...1) * random(0...20)),
                    envelope: (0..<random(isLarge ? 0...9000 : 0...300)).map { _ in
                        UInt8(truncatingIfNeeded: random(0...255))
                    })
            }
            let names = (0..<(isPlain ? 1 : random(1...4))).map { _ in text(random(1...40)) }
            new.encodedSend = EncodedSend(
                contents: contents, recipients: names,
                shares: isPlain || random(0...1) == 0 ? nil : names.map { _ in Array(0..<random(1...contents.count)) })
            new.results = names.map { _ in (random(1...1 << 52), UInt64.random(in: 1 ... .max, using: &generator)) }
            if random(0...9) == 0 { new.request.mode = .part(until: random(0...1 << 52)) }
            if random(0...9) == 0 { new.request.place = nil }
            if random(0...9) == 0 { new.repeatableUntil += .seconds(1) }
            sends.append(new)
            all.append(new)
            // Also when the last block is empty, or was left in the middle.
            guard random(0...200) == 0 else { continue }
            let kept = sends.takeAll()
            #expect(sends.isEmpty)
            #expect(kept.count <= all.count && kept.last?.request.number == number)
            for (one, other) in zip(kept.reversed(), all.reversed()) {
                #expect(one.encodedSend == other.encodedSend && one.request.number == other.request.number)
                #expect(one.results.elementsEqual(other.results, by: ==) && one.request.mode == other.request.mode)
                #expect(one.request.place == other.request.place && one.request.sender == other.request.sender)
                #expect(one.sentAt == other.sentAt && one.repeatableUntil == other.repeatableUntil)
            }
            if random(0...1) == 0 { for send in kept { sends.append(send) } } else { all = [] }
        }
        #expect(all.count > 1)
    }

    @Test("a place knows its last confirmed request as long as Redis has the answer")
    func places() {
        var places = RequestPlaces()
        let (number, place) = places.take()
        #expect(places.confirmed(in: place!, at: .zero) == 0)
        places.confirm(number, in: place!, until: .seconds(10))
        #expect(places.confirmed(in: place!, at: .seconds(9)) == number)
        #expect(places.confirmed(in: place!, at: .seconds(10)) == 0)
        places.forgetConfirmed()
        #expect(places.confirmed(in: place!, at: .seconds(9)) == 0)
    }

    @Test("the largest send fits into the smallest part of a partition")
    func largest() {
        let count = SendRequest.maxDeliveries / SendRequest.maxRecipients
        let content = EncodedSend.Content(
            life: 0, collapseKey: "",
            envelope: Array(repeating: 0, count: SendRequest.maxBytes / SendRequest.maxRecipients / count))
        let names = (0..<SendRequest.maxRecipients).map { String(repeating: "n", count: 509) + "\($0)" }
        for (contents, recipients) in [
            (Array(repeating: content, count: count), names),
            (
                [
                    EncodedSend.Content(
                        life: 0, collapseKey: "", envelope: Array(repeating: 0, count: SendRequest.maxBytes))
                ], ["m"]
            ),
        ] {
            var largest = send(1, at: .zero)
            largest.encodedSend = EncodedSend(contents: contents, recipients: recipients)
            #expect(largest.size <= 2 * SendRequest.maxBytes)
        }
    }

    @Test("what a post office remembers has limits")
    func configuration() {
        for change: (inout PostOfficeConfiguration) -> Void in [
            { $0.repairTime = .seconds(61) }, { $0.repairTime = .seconds(-1) }, { $0.repairBytes = -1 },
        ] {
            var configuration = PostOfficeConfiguration()
            change(&configuration)
            let error = #expect(throws: QueueListenError.self) { try configuration.validate(namespace: "n") }
            #expect(error?.code == .invalidArgument)
        }
    }
}
