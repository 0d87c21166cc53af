import Foundation
import Testing

@testable import Gateway

@Suite("Signatures")
struct SignatureTests {
    /// The test vectors of docs/http.md.
    static func vectors() throws -> [[String]] {
        let page = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
            .appendingPathComponent("../../../docs/http.md")
        return try String(contentsOf: page, encoding: .utf8).split(separator: "\n").compactMap { line in
            let cells = line.split(separator: "|").map { cell in
                cell.trimmingCharacters(in: .whitespaces).trimmingCharacters(in: ["`"])
            }
            return cells.count == 7 && Int(cells[0]) != nil ? cells : nil
        }
    }

    static let session = "7fAAECAwQFBgcICQoLDA0ODw"
    static let token = "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY"

    @Test("the test vectors of the documentation are valid, and no other request is")
    func documented() throws {
        let vectors = try Self.vectors()
        #expect(vectors.count == 5)
        for cells in vectors {
            let (method, target, body) = (cells[1], cells[2], Array(cells[5].utf8))
            func signature(time: String = cells[3], nonce: String = cells[4], session: String = Self.session) throws
                -> Signature
            {
                try #require(Signature(session: session, time: time, nonce: nonce, signature: cells[6]))
            }
            #expect(try signature().isValid(method: method, target: target, body: body, token: Self.token))
            #expect(
                TestClient.signature(token: Self.token, [method, target, Self.session, cells[3], cells[4]], body: body)
                    == cells[6])
            #expect(try !signature().isValid(method: "PUT", target: target, body: body, token: Self.token))
            #expect(try !signature().isValid(method: method, target: target + "&", body: body, token: Self.token))
            #expect(try !signature().isValid(method: method, target: target, body: body + [32], token: Self.token))
            #expect(try !signature().isValid(method: method, target: target, body: body, token: Self.token + "A"))
            #expect(
                try !signature(time: "1750000000009").isValid(
                    method: method, target: target, body: body, token: Self.token))
            #expect(
                try !signature(nonce: "another-nonce-123").isValid(
                    method: method, target: target, body: body, token: Self.token))
            #expect(
                try !signature(session: "8" + Self.session.dropFirst()).isValid(
                    method: method, target: target, body: body, token: Self.token))
        }
    }

    @Test("each part must have its form")
    func forms() {
        let (nonce, code) = ("abcdefghij_-0123", "v1=" + String(repeating: "0f", count: 32))
        func isAccepted(_ session: String? = nil, _ time: String = "1", _ nonce: String, _ code: String) -> Bool {
            Signature(session: session ?? Self.session, time: time, nonce: nonce, signature: code) != nil
        }
        #expect(isAccepted(nil, "1", nonce, code))
        for session in [
            "", "7f", Self.session + "A", "zz" + Self.session.dropFirst(2), "7f" + String(repeating: "\n", count: 22),
        ] {
            #expect(!isAccepted(session, "1", nonce, code))
        }
        for time in ["", "-1", "+1", " 1", "1.0", "１", "1234567890123456"] {
            #expect(!isAccepted(nil, time, nonce, code))
        }
        for nonce in ["", "short", String(repeating: "a", count: 65), "abcdefghijklmno\n", "abcdefghijklmnopä"] {
            #expect(!isAccepted(nil, "1", nonce, code))
        }
        for code in ["", "v2=" + code.dropFirst(3), code.uppercased(), code + "0", code.dropLast() + ""] {
            #expect(!isAccepted(nil, "1", nonce, String(code)))
        }
    }

    @Test("a code is compared in constant time: the comparison is the cryptographic library's")
    func constantTime() throws {
        // A timing cannot be asserted. What can: the code is compared as an authentication code, not as a text or an array.
        let source = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
            .appendingPathComponent("../../Sources/Gateway/Sessions/Signature.swift")
        let text = try String(contentsOf: source, encoding: .utf8)
        #expect(text.contains("HMAC<SHA256>.isValidAuthenticationCode("))
        #expect(!text.contains("== code") && !text.contains("code =="))
    }
}
