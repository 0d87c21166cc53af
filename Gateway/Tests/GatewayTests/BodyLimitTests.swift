import Testing

@testable import Gateway

/// Bodies whose length the client does not announce.
@Suite("The limit of a body in chunks")
struct BodyLimitTests {
    @Test("a body of exactly the limit is accepted, and one that passes it is refused before it has ended")
    func chunks() async throws {
        let login = #"{"user":"alice","device":"phone","credential":"secret of alice"}"#
        let limit = 1000
        try await withNodes(configure: { $0.maxBodyBytes = limit }) { nodes, _ in
            let head =
                "POST /v1/sessions HTTP/1.1\r\nHost: gateway\r\nContent-Type: application/json\r\n"
                + "Transfer-Encoding: chunked\r\n\r\n"
            for (more, status) in [(0, "201"), (1, "413")] {
                let answer = try await withRawConnection(port: nodes[0].port) { connection in
                    try await connection.write(head)
                    var rest = login + String(repeating: " ", count: limit - login.utf8.count + more)
                    while !rest.isEmpty {
                        let part = rest.prefix(100)
                        rest.removeFirst(part.count)
                        try await connection.write("\(String(part.utf8.count, radix: 16))\r\n\(part)\r\n")
                    }
                    // The end is sent only where the gateway must wait for it.
                    if more == 0 { try await connection.write("0\r\n\r\n") }
                    return try await connection.readHead()
                }
                #expect(answer?.hasPrefix("HTTP/1.1 \(status) ") == true, "\(answer ?? "nothing")")
            }
        }
    }
}
