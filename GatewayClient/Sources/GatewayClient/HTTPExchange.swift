import AsyncHTTPClient
import NIOCore
import NIOHTTP1
import NIOPosix

/// Sends requests to a node and reads its replies.
struct HTTPExchange: Sendable {
    /// A reply is larger only if it is not the gateway's.
    static let maxReplyBytes = 64 << 20

    /// The client that is used if the application passes none. It lives as long as the process.
    ///
    /// An open stream needs a connection of its own, so the number of connections must not be low. A redirect would
    /// leave the place for which a request was signed.
    static let sharedHTTP: HTTPClient = {
        var configuration = HTTPClient.Configuration(redirectConfiguration: .disallow)
        configuration.connectionPool.concurrentHTTP1ConnectionsPerHostSoftLimit = 10_000
        configuration.httpVersion = .http1Only
        // A node that refuses connections is left at once: the client has its own delays.
        configuration.connectionPool.retryConnectionEstablishment = false
        return HTTPClient(eventLoopGroup: .singletonMultiThreadedEventLoopGroup, configuration: configuration)
    }()

    let http: HTTPClient

    /// Sends a request, and returns the reply if it is a success. Its body has not been read.
    ///
    /// - Throws: the error that the reply describes; `.network`, `.cancelled`.
    func open(
        _ url: String, method: String, headers: [(String, String)], body: [UInt8], within limit: Duration
    ) async throws(GatewayError) -> HTTPClientResponse {
        var request = HTTPClientRequest(url: url)
        request.method = HTTPMethod(rawValue: method)
        request.headers = HTTPHeaders(headers)
        if !body.isEmpty { request.body = .bytes(ByteBuffer(bytes: body)) }
        let response: HTTPClientResponse
        do {
            response = try await withTimeout(limit, "no reply") { [request] in
                try await http.execute(request, deadline: .distantFuture)
            }
        } catch { throw GatewayError(requestFailed: error) }
        guard response.status != .ok, response.status != .created, response.status != .noContent else {
            return response
        }
        throw GatewayError(
            status: Int(response.status.code), retryAfter: response.headers.first(name: "Retry-After"),
            body: try await collect(response, within: limit))
    }

    /// Reads the body of a reply.
    ///
    /// - Throws: `.network`, `.cancelled`.
    func collect(_ response: HTTPClientResponse, within limit: Duration) async throws(GatewayError) -> [UInt8] {
        do {
            return try await withTimeout(limit, "no complete reply") {
                Array(try await response.body.collect(upTo: Self.maxReplyBytes).readableBytesView)
            }
        } catch { throw GatewayError(requestFailed: error) }
    }
}

/// Reads the body of a stream piece by piece, each within a time.
final class StreamBody: Sendable {
    /// Used by one task at a time: `next` waits for the task that it passes the iterator to.
    private final class Box: @unchecked Sendable {
        var iterator: HTTPClientResponse.Body.AsyncIterator
        init(_ iterator: HTTPClientResponse.Body.AsyncIterator) { self.iterator = iterator }
    }

    private let box: Box

    init(_ response: HTTPClientResponse) { box = Box(response.body.makeAsyncIterator()) }

    /// Returns the next piece; `nil` at the end.
    ///
    /// - Throws: `.network`, also after the time; `.cancelled`.
    func next(within limit: Duration) async throws(GatewayError) -> ByteBuffer? {
        let piece: ByteBuffer?
        do {
            piece = try await withTimeout(limit, "no data") { [box] in try await box.iterator.next() }
        } catch { throw GatewayError(requestFailed: error) }
        if piece == nil, Task.isCancelled { throw GatewayError(requestFailed: CancellationError()) }
        return piece
    }
}
