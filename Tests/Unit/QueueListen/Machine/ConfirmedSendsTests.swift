// What a post office remembers of its confirmed sends, and for how long.
import CoordinationBase
import Testing

@testable import QueueListen

@Suite("Confirmed sends") struct ConfirmedSendsTests {
    private func send(_ number: Int, at time: Duration, bytes: Int = 100) -> ConfirmedSend {
        let content = EncodedSend.Content(life: 0, collapseKey: "", envelope: Array(repeating: 0, count: bytes))
        return ConfirmedSend(
            encodedSend: EncodedSend(contents: [content], recipients: ["m"]),
            request: SendScriptRequest(sender: "s", number: number, answerLifetime: .seconds(600), fingerprint: "0"),
            isInOrder: true, results: [(1, 1)], sentAt: time, confirmedAt: time, repeatableUntil: time + .seconds(300))
    }

    @Test("they are kept for a time that is counted from the last one, and within the bytes")
    func bounds() {
        var sends = ConfirmedSends(maxBytes: 10_000, maxAge: .seconds(30))
        for number in 0..<5 { sends.append(send(number, at: .seconds(number * 10))) }
        #expect(sends.sends.map(\.request.number) == [1, 2, 3, 4])
        sends.append(send(5, at: .seconds(41), bytes: 9000))
        #expect(sends.sends.map(\.request.number) == [4, 5])
        sends.append(send(6, at: .seconds(41), bytes: 20_000))
        #expect(sends.sends.map(\.request.number) == [4, 5], "one that is too large displaces nothing")
        #expect(sends.takeAll().count == 2 && sends.sends.isEmpty)
        var none = ConfirmedSends(maxBytes: 10_000, maxAge: .zero)
        none.append(send(1, at: .zero))
        #expect(none.sends.isEmpty)
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
