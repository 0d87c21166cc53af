import Foundation
import Testing

@testable import GatewayClient

@Suite("Formats of the client")
struct ClientFormatTests {
    @Test("the client computes the signatures of the documentation's test vectors")
    func vectors() throws {
        let vectors = try SignatureTests.vectors()
        #expect(vectors.count == 5)
        let signer = RequestSigner(session: SignatureTests.session, token: SignatureTests.token)
        for cells in vectors {
            let signature = signer.signature(
                method: cells[1], target: cells[2], time: try #require(Int(cells[3])), nonce: cells[4],
                body: Array(cells[5].utf8))
            #expect(signature == cells[6])
        }
    }

    @Test("a nonce has its form, and is another one each time")
    func nonces() {
        let nonces = Set((0..<1000).map { _ in RequestSigner.randomText() })
        #expect(nonces.count == 1000)
        #expect(
            nonces.allSatisfy { nonce in
                nonce.utf8.count == 22
                    && nonce.utf8.allSatisfy {
                        "-_".utf8.contains($0) || Character(UnicodeScalar($0)).isASCIILetterOrDigit
                    }
            })
    }

    @Test("JSON is split without changing the values inside")
    func rawJSON() throws {
        let text = Array(
            #"{ "a" : [1.10, {"x": "]}\"\\"} , "s" ,true,null,[] ] ,"j\u0073on":{"n":123456789012345678.10},"e":-0e-1}"#
                .utf8)
        let members = try #require(RawJSON.members(of: text[...]))
        func string(_ text: RawJSON.Text?) -> String { text.map { String(decoding: $0, as: UTF8.self) } ?? "" }
        #expect(string(members["json"]) == #"{"n":123456789012345678.10}"# && string(members["e"]) == "-0e-1")
        let elements = try #require(members["a"].flatMap { RawJSON.elements(of: $0) })
        #expect(elements.map { string($0) } == ["1.10", #"{"x": "]}\"\\"}"#, #""s""#, "true", "null", "[]"])
        #expect(RawJSON.members(of: Array("[]".utf8)[...]) == nil && RawJSON.elements(of: Array("{}".utf8)[...]) == nil)
        #expect(RawJSON.members(of: Array(" { } ".utf8)[...])?.isEmpty == true)
    }

    @Test(
        "any text is written as a JSON string that decodes to it", arguments: ["", "\"\\\n\u{0}\u{1F}\u{7F}\u{2028}ü👋"])
    func strings(text: String) throws {
        let json = Data(RawJSON.array([RawJSON.string(text)]))
        #expect(try JSONDecoder().decode([String].self, from: json) == [text])
    }

    @Test("delays grow with each round over the nodes, are random, and are at least what the server demands")
    func delays() {
        var configuration = GatewayClientConfiguration()
        configuration.minDelay = .seconds(1)
        configuration.maxDelay = .seconds(30)
        func delays(_ nodes: Int, random: Double, retry: Duration? = nil, after: Duration? = nil) -> [Duration] {
            let backoff = Backoff(configuration: configuration, nodes: nodes, random: { random })
            return (0..<8).map { backoff.delay(failures: $0, retry: retry, retryAfter: after) }
        }
        #expect(delays(1, random: 1) == [1, 2, 4, 8, 16, 30, 30, 30].map { .seconds($0) })
        #expect(delays(1, random: 0) == [0.5, 1, 2, 4, 8, 15, 15, 15].map { .seconds($0) })
        #expect(delays(2, random: 1) == [0.25, 1, 1, 2, 2, 4, 4, 8].map { .seconds($0) })
        #expect(delays(1, random: 1, retry: .seconds(4)).prefix(2) == [.seconds(4), .seconds(8)])
        #expect(delays(1, random: 0, after: .seconds(60)).allSatisfy { $0 == .seconds(60) })
        #expect(delays(1, random: 1, after: .seconds(60)).allSatisfy { $0 == .seconds(75) })
    }

    @Test("a message that was delivered is recognized by its position and by its id, within the last 4,096")
    func duplicates() throws {
        func message(_ cursor: Int, _ id: String) throws -> GatewayMessage {
            let text = #"{"cursor": "\#(cursor)", "index": 1, "id": "\#(id)", "sent": 1, "text": ""}"#
            return try GatewayMessage(Array(text.utf8)[...])
        }
        var duplicates = Duplicates()
        #expect(duplicates.insert(try message(1, "a")))
        #expect(!duplicates.insert(try message(1, "a")))
        #expect(!duplicates.insert(try message(2, "a")))
        #expect(duplicates.insert(try message(3, "")))
        #expect(duplicates.insert(try message(4, "")))
        for number in 0..<Duplicates.maxCount { #expect(duplicates.insert(try message(10 + number, "b\(number)"))) }
        #expect(duplicates.insert(try message(1, "a")))
    }

    @Test("only the origins of gateways are accepted as their URLs")
    func urls() throws {
        #expect(
            try NodeList(["https://a.example/", "http://127.0.0.1:8080"], first: 0).origins
                == ["https://a.example", "http://127.0.0.1:8080"])
        for url in [
            "", "a.example", "ftp://a.example", "https://a.example/x", "https://a.example?x", "https://u@a.example",
        ] {
            #expect(throws: GatewayError.self) { try NodeList([url], first: 0) }
        }
        #expect(throws: GatewayError.self) { try NodeList([], first: 0) }
    }

    @Test("the token is in no description of a session")
    func description() {
        let session = GatewaySession(
            id: "1", user: "alice", device: "phone", token: "very-secret", expires: 0, cursor: "")
        var dumped = ""
        dump(session, to: &dumped)
        for text in ["\(session)", String(reflecting: session), dumped] { #expect(!text.contains("very-secret")) }
    }
}

extension Character {
    fileprivate var isASCIILetterOrDigit: Bool { isASCII && (isLetter || isNumber) }
}
