import Foundation
import HTTPTypes
import Hummingbird
import NIOConcurrencyHelpers
import NIOCore
import QueueListen
import ServiceLifecycle

/// The interface of the published duel: `POST /SIGNATURE` for each request, with the request's type in the body.
///
/// It is thin: it knows neither tokens nor rules. Each type stands for a call of the gateway or of a game (``call(_:)``). The
/// body names the session, the time and the nonce, and the path is the signature of that call with this body
/// (docs/http.md, "Signed requests"). So the call itself verifies it, and any node answers.
struct PublishedInterface<Context: RequestContext>: Sendable {
    private static var maxBodyBytes: Int { 1 << 16 }

    private let responder: RouterResponder<Context>
    private let office: PostOffice

    /// - Parameter responder: of the router with all calls.
    init(_ responder: RouterResponder<Context>, _ office: PostOffice) {
        (self.responder, self.office) = (responder, office)
    }

    func addRoute(to router: Router<Context>) {
        router.post("/:signature") { request, context in
            do throws(Refusal) { return try await answer(request, context) } catch { return error.response }
        }
    }

    // MARK: Requests

    /// The fields that all requests have in common; the rest is the content of the call.
    private struct Typed: Decodable {
        var type: String
        var session: String?
        var time: Int?
        var nonce: String?
        /// The cursor of the last message that the player has, for `listen`.
        var last: String?
        /// In seconds, for `listen`.
        var wait: Int?
    }

    private struct Login: Decodable {
        /// Without a name, the player is anonymous.
        var name: String?
        var password: String?
        /// Of an anonymous player who logs in again.
        var secret: String?
        var device: String?
    }

    private func answer(_ request: Request, _ context: Context) async throws(Refusal) -> Response {
        let version = request.headers[HTTPField.Name("Accept-Version")!] ?? "1"
        guard version.drop(while: { "~^ ".contains($0) }).prefix(while: { $0 != "." }) == "1" else {
            throw Refusal(.badRequest, "InvalidVersion", "this interface has version 1")
        }
        let mediaType = request.headers[.contentType]?.prefix { $0 != ";" }
        guard mediaType?.lowercased().trimmingCharacters(in: .whitespaces) == "application/json" else {
            throw Refusal(.notAcceptable, "NotAcceptable", "a request is application/json")
        }
        let body: Data
        do { body = Data(try await request.body.collect(upTo: Self.maxBodyBytes).readableBytesView) } catch {
            throw .invalid("a body has at most \(Self.maxBodyBytes) bytes")
        }
        guard let typed = try? JSONDecoder().decode(Typed.self, from: body) else {
            throw .invalid("a request is a JSON object with a type; a time is a number of milliseconds")
        }
        if typed.type == "login" { return try await logIn(body, request, context) }
        let (method, target) = try Self.call(typed)
        guard let session = typed.session, let time = typed.time, let nonce = typed.nonce else {
            throw .invalid("the session, the time or the nonce is missing")
        }
        var headers = request.headers
        for (name, value) in [
            ("X-Session", session), ("X-Time", "\(time)"), ("X-Nonce", nonce),
            ("X-Signature", "v1=\(context.parameters.get("signature") ?? "")"),
        ] {
            guard HTTPField.isValidValue(value) else { throw .invalid("the session or the nonce is invalid") }
            headers[HTTPField.Name(name)!] = value
        }
        let (response, reply) = try await forward(method, target, headers, body, request, context)
        if response.status.kind == .successful {
            return .json(response.status, reply.isEmpty ? [:] : reply)
        }
        if typed.type == "listen" {
            if (reply["type"] as? String)?.hasSuffix("logged-in-elsewhere") == true {
                return .json(.ok, ["messages": [["type": "fl"]]])
            }
            if Task.isShuttingDownGracefully { return .json(.ok, ["messages": [["type": "su"]]]) }
        }
        throw Refusal(response.status, reply)
    }

    /// The call for which a request stands: its method and target, as they are signed.
    private static func call(_ typed: Typed) throws(Refusal) -> (HTTPRequest.Method, String) {
        switch typed.type {
        case "logout": return (.post, "/account/leave")
        case "check": return (.post, "/account/state")
        case "listen":
            let wait = typed.wait ?? 30
            guard let last = typed.last else { return (.get, "/v1/mail?wait=\(wait)") }
            guard Cursor(last) != nil else { throw .invalid("last is the cursor of a message") }
            // The messages that the player has are acknowledged, and only then deleted.
            return (.get, "/v1/mail?after=\(last)&ack=\(last)&wait=\(wait)")
        case "games", "data": return (.post, "/duel/state")
        case "begin": return (.post, "/duel/begin")
        case "random": return (.post, "/duel/random")
        case "qrandom": return (.post, "/duel/random/cancel")
        case "move": return (.post, "/duel/play")
        case "quit": return (.post, "/duel/quit")
        case "device": return (.post, "/duel/device")
        case "craft", "buy": return (.post, "/duel/trade")
        default: throw .invalid("there is no such type of request")
        }
    }

    private func logIn(_ body: Data, _ request: Request, _ context: Context) async throws(Refusal) -> Response {
        guard let login = try? JSONDecoder().decode(Login.self, from: body) else {
            throw .invalid("a login has the texts name, password or secret, and device")
        }
        let random = { (length: Int) in
            String((0..<length).map { _ in "abcdefghijklmnopqrstuvwxyz0123456789".randomElement()! })
        }
        let (name, secret) = (login.name ?? "guest" + random(10), login.secret ?? random(32))
        let credential: Any = login.password.map { ["password": $0] } ?? secret
        let content: [String: Any] = ["user": name, "device": login.device ?? "duel", "credential": credential]
        let (response, reply) = try await forward(
            .post, "/v1/sessions", request.headers, Data(json: content), request, context)
        guard response.status.kind == .successful else { throw Refusal(response.status, reply) }
        var answer: [String: Any] = [
            "id": name, "nickname": name, "signing": "HMAC-SHA256", "waiting": try await waiting(name),
        ]
        for field in ["session", "token", "time", "expires"] { answer[field] = reply[field] }
        if login.password == nil { answer["secret"] = secret }
        return .json(.ok, answer)
    }

    private func waiting(_ name: String) async throws(Refusal) -> Int {
        do { return try await office.mailbox(name).count } catch {
            throw Refusal(.serviceUnavailable, "Unavailable", "the mailbox cannot be reached")
        }
    }

    /// Makes a call at this node, and returns the response with its JSON.
    private func forward(
        _ method: HTTPRequest.Method, _ target: String, _ headers: HTTPFields, _ body: Data, _ request: Request,
        _ context: Context
    ) async throws(Refusal) -> (Response, [String: Any]) {
        var head = request.head
        (head.method, head.path, head.headerFields) = (method, target, headers)
        let reply = ReplyBody()
        do {
            let response = try await responder.respond(
                to: Request(head: head, body: RequestBody(buffer: ByteBuffer(bytes: body))), context: context)
            try await response.body.write(reply)
            let bytes = reply.bytes.withLockedValue { Data($0.readableBytesView) }
            let object = try? JSONSerialization.jsonObject(with: bytes)
            return (response, object as? [String: Any] ?? [:])
        } catch { throw Refusal(.internalServerError, "Internal", "the call has failed") }
    }

    private struct ReplyBody: ResponseBodyWriter {
        let bytes = NIOLockedValueBox(ByteBuffer())

        func write(_ buffer: ByteBuffer) async throws {
            bytes.withLockedValue { _ = $0.writeImmutableBuffer(buffer) }
        }

        func finish(_ trailingHeaders: HTTPFields?) async throws {}
    }
}

// MARK: Replies

/// An error of the interface: a status, the code by which clients decide, and an explanation.
private struct Refusal: Error {
    let response: Response

    init(_ status: HTTPResponse.Status, _ code: String, _ message: String, reason: String? = nil) {
        var content = ["code": code, "message": message]
        content["reason"] = reason
        response = .json(status, content)
    }

    /// - Parameter problem: of a call (docs/http.md, "Errors").
    init(_ status: HTTPResponse.Status, _ problem: [String: Any]) {
        let code =
            switch status.code {
            case 401, 403: "NotAuthorized"
            case 409: "Refused"
            case 429: "TooManyRequests"
            case 400..<500: "InvalidArgument"
            default: "Unavailable"
            }
        let type = (problem["type"] as? String)?.split { "/:#".contains($0) }.last.map { String($0) }
        self.init(
            status, code, problem["detail"] as? String ?? "the call has failed",
            reason: problem["reason"] as? String ?? type)
    }

    static func invalid(_ message: String) -> Refusal { Refusal(.badRequest, "InvalidArgument", message) }
}

extension Response {
    fileprivate static func json(_ status: HTTPResponse.Status, _ content: [String: Any]) -> Response {
        Response(
            status: status, headers: [.contentType: "application/json", .cacheControl: "no-store"],
            body: ResponseBody(byteBuffer: ByteBuffer(bytes: Data(json: content))))
    }
}

extension Data {
    /// - Parameter content: texts, numbers, lists and objects.
    fileprivate init(json content: [String: Any]) {
        self = (try? JSONSerialization.data(withJSONObject: content, options: .sortedKeys)) ?? Data("{}".utf8)
    }
}
