import HTTPTypes
import Hummingbird
import Logging
import NIOConcurrencyHelpers
import NIOCore
import ServiceLifecycle

@testable import GatewayClient

/// Nodes of a gateway whose replies a test decides.
struct FakeGateway: Sendable {
    /// A request that a node has received.
    struct Received: Sendable {
        var node: Int
        /// The number of requests before this one, at all nodes together.
        var number: Int
        var method: String
        var target: String
        var headers: HTTPFields
        var body: String
        var nonce: String { headers[HTTPField.Name("X-Nonce")!] ?? "" }
        var time: Int { Int(headers[HTTPField.Name("X-Time")!] ?? "") ?? 0 }
    }

    typealias Answer = @Sendable (Received) async throws -> Response

    let urls: [String]
    private let log: NIOLockedValueBox<[Received]>
    /// The delays that the client has waited for, without waiting.
    let delays = NIOLockedValueBox<[Duration]>([])

    var received: [Received] { log.withLockedValue { $0 } }

    /// A client of these nodes that begins at the first one, and waits for no delay.
    ///
    /// - Parameter clockOffset: the time by which the clock of the client is ahead.
    func client(
        _ configuration: GatewayClientConfiguration = .init(), clockAhead: Int = 0
    ) throws -> GatewayClient {
        var environment = ClientEnvironment.system
        environment.now = { ClientEnvironment.system.now() + clockAhead }
        environment.sleep = { [delays] delay in
            delays.withLockedValue { $0.append(delay) }
            try Task.checkCancellation()
            await Task.yield()
        }
        return GatewayClient(
            nodes: try NodeList(urls, first: 0),
            session: GatewaySession(
                id: "session", user: "alice", device: "phone", token: "token", expires: .max, cursor: "c0"),
            configuration: configuration, exchange: HTTPExchange(http: HTTPExchange.sharedHTTP),
            environment: environment)
    }

    /// Runs nodes.
    static func run(
        _ count: Int = 1, _ answer: @escaping Answer, _ body: (FakeGateway) async throws -> Void
    ) async throws {
        let log = NIOLockedValueBox<[Received]>([])
        var (urls, runs): ([String], [Task<Void, any Error>]) = ([], [])
        for node in 0..<count {
            let router = Router()
            for method in [HTTPRequest.Method.get, .post, .delete] {
                router.on("/**", method: method) { request, _ in
                    let text = String(buffer: try await request.body.collect(upTo: 1 << 20))
                    let received = log.withLockedValue { log in
                        let received = Received(
                            node: node, number: log.count, method: request.method.rawValue,
                            target: request.head.path ?? "", headers: request.headers, body: text)
                        log.append(received)
                        return received
                    }
                    return try await answer(received)
                }
            }
            let (ports, continuation) = AsyncStream<Int>.makeStream()
            var logger = Logger(label: "fake")
            logger.logLevel = .critical
            let application = Application(
                router: router, server: .plain,
                configuration: ApplicationConfiguration(address: .hostname("127.0.0.1", port: 0)),
                onServerRunning: { continuation.yield($0.localAddress?.port ?? 0) }, logger: logger)
            runs.append(Task { try await application.run() })
            for await port in ports {
                urls.append("http://127.0.0.1:\(port)")
                break
            }
        }
        let result: Result<Void, any Error>
        do { result = .success(try await body(FakeGateway(urls: urls, log: log))) } catch { result = .failure(error) }
        for run in runs {
            run.cancel()
            _ = await run.result
        }
        try result.get()
    }
}

extension Response {
    static func json(_ text: String, status: HTTPResponse.Status = .ok) -> Response {
        Response(
            status: status, headers: [.contentType: "application/json"],
            body: .init(byteBuffer: ByteBuffer(string: text)))
    }

    /// Problem details.
    static func problem(
        _ status: Int, _ word: String, _ more: String = "", retryAfter: Int? = nil
    ) -> Response {
        var response = json(
            #"{"type": "urn:redisdc:\#(word)", "title": "a problem", "status": \#(status)\#(more)}"#,
            status: .init(code: status))
        if let retryAfter { response.headers[HTTPField.Name("Retry-After")!] = "\(retryAfter)" }
        return response
    }

    /// An event stream.
    ///
    /// - Parameter isOpen: whether the stream stays open after the text.
    static func events(_ text: String, isOpen: Bool = false) -> Response {
        Response(
            status: .ok, headers: [.contentType: "text/event-stream"],
            body: ResponseBody { writer in
                try await writer.write(ByteBuffer(string: text))
                if isOpen { try await Task.sleep(for: .seconds(3600)) }
                try await writer.finish(nil)
            })
    }

    /// A message as an event.
    static func event(_ number: Int) -> String {
        "id: c\(number)\nevent: message\ndata: \(message(number))\n\n"
    }

    static func message(_ number: Int) -> String {
        #"{"cursor": "c\#(number)", "index": \#(number), "id": "m\#(number)", "sent": 1, "text": "\#(number)"}"#
    }

    /// A page of `GET /v1/mail`.
    static func page(_ numbers: [Int], status: String = "messages", cursor: String) -> Response {
        let messages = numbers.map { message($0) }.joined(separator: ", ")
        return json(#"{"status": "\#(status)", "messages": [\#(messages)], "cursor": "\#(cursor)", "skipped": 0}"#)
    }
}
