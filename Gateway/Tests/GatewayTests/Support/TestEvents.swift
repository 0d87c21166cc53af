import AsyncHTTPClient
import NIOCore
import NIOHTTP1
import Testing

@testable import Gateway

/// A stream of server-sent events, read as a browser does.
struct TestEvents: AsyncSequence {
    struct Event: Equatable, Sendable {
        var name: String
        /// The last event id after this event.
        var id: String
        var data: JSON
    }

    let status: Int
    let headers: HTTPHeaders
    private let body: HTTPClientResponse.Body

    init(_ client: TestClient, after: String? = nil, lastEventID: String? = nil) async throws {
        let target = "/v1/events" + (after.map { "?after=\($0)" } ?? "")
        var headers = client.headers("GET", target)
        if let lastEventID { headers.add(name: "Last-Event-ID", value: lastEventID) }
        try await self.init(client.url + target, headers)
    }

    init(_ url: String, _ headers: HTTPHeaders) async throws {
        var request = HTTPClientRequest(url: url)
        request.headers = headers
        let response = try await TestClient.http.execute(request, deadline: .distantFuture)
        status = Int(response.status.code)
        self.headers = response.headers
        body = response.body
    }

    func makeAsyncIterator() -> Iterator { Iterator(bytes: body.makeAsyncIterator()) }

    struct Iterator: AsyncIteratorProtocol {
        fileprivate var bytes: HTTPClientResponse.Body.AsyncIterator
        private var buffer = ByteBuffer()
        private(set) var id = ""
        /// The number of comments so far.
        private(set) var comments = 0
        /// The last time to reconnect, in milliseconds.
        private(set) var retry: Int?
        private var name = ""
        private var data: String?

        fileprivate init(bytes: HTTPClientResponse.Body.AsyncIterator) { self.bytes = bytes }

        mutating func next() async throws -> Event? {
            while let line = try await line() {
                if line.isEmpty {
                    defer { (name, data) = ("", nil) }
                    guard let data else { continue }
                    return Event(
                        name: name.isEmpty ? "message" : name, id: id, data: try JSONParser.parse(Array(data.utf8)))
                }
                let (field, value) = split(line)
                switch field {
                case "": comments += 1
                case "id": id = value
                case "event": name = value
                case "retry": retry = Int(value)
                case "data": data = data.map { $0 + "\n" + value } ?? value
                default: Issue.record("an unknown field: \(line)")
                }
            }
            return nil
        }

        private func split(_ line: String) -> (field: String, value: String) {
            guard let colon = line.firstIndex(of: ":") else { return (line, "") }
            let value = line[line.index(after: colon)...]
            return (String(line[..<colon]), String(value.hasPrefix(" ") ? value.dropFirst() : value))
        }

        private mutating func line() async throws -> String? {
            while true {
                if let length = buffer.readableBytesView.firstIndex(of: UInt8(ascii: "\n")).map({
                    $0 - buffer.readerIndex
                }) {
                    let line = buffer.readString(length: length)
                    buffer.moveReaderIndex(forwardBy: 1)
                    return line
                }
                guard var next = try await bytes.next() else { return nil }
                buffer.discardReadBytes()
                buffer.writeBuffer(&next)
            }
        }
    }
}
