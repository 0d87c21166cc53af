import HTTPTypes
import Hummingbird

/// The reply of a call: JSON with the status 200.
protocol Reply: ResponseGenerator {
    var json: JSON { get }
}

extension Reply {
    func response(from request: Request, context: some RequestContext) throws -> Response { Response(.ok, json) }
}

/// A reply without a body.
struct NoContent: ResponseGenerator {
    func response(from request: Request, context: some RequestContext) throws -> Response { .noContent }
}

extension Response {
    /// Creates a reply with a JSON body.
    init(_ status: HTTPResponse.Status, _ json: JSON, contentType: String = "application/json") {
        self.init(
            status: status, headers: [.contentType: contentType, .cacheControl: "no-store"],
            body: .init(byteBuffer: .init(bytes: json.bytes)))
    }

    /// A reply without a body.
    static var noContent: Response { Response(status: .noContent, headers: [.cacheControl: "no-store"]) }
}
