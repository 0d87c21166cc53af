// Which pages of other origins may use the gateway.
import HTTPTypes
import Hummingbird

extension Gateway {
    /// Checks the origin of a request that a browser's page has sent. Other programs send none.
    func checkOrigin(_ origin: String?) throws(Problem) {
        guard let origin else { return }
        guard configuration.allowedOrigins.contains(origin) else {
            throw Problem(.origin, "the origin is not among the allowed origins")
        }
    }

    /// Checks that a request with a cookie comes from a page of the gateway's own origin, or of an allowed one: browsers add
    /// the cookie to requests of other pages too.
    func checkCookieOrigin(_ headers: HTTPFields) throws(Problem) {
        if let origin = headers[.origin] { return try checkOrigin(origin) }
        guard headers[.secFetchSite] == "same-origin" else {
            throw Problem(.origin, "with a cookie, a request needs Sec-Fetch-Site: same-origin or an allowed Origin")
        }
    }

    /// Answers a preflight request.
    func preflight(_ request: Request, _ methods: [String]) -> Response {
        var response = Response.noContent
        addOriginHeaders(to: &response, for: request)
        if response.headers[.accessControlAllowOrigin] != nil {
            response.headers[.accessControlAllowMethods] = methods.joined(separator: ", ")
            response.headers[.accessControlAllowHeaders] =
                "Content-Type, Last-Event-ID, X-Session, X-Time, X-Nonce, X-Signature"
            response.headers[.accessControlMaxAge] = "600"
        }
        return response
    }

    /// Lets the page of an allowed origin read a reply.
    func addOriginHeaders(to response: inout Response, for request: Request) {
        response.headers[.vary] = "Origin"
        guard let origin = request.headers[.origin], configuration.allowedOrigins.contains(origin) else { return }
        response.headers[.accessControlAllowOrigin] = origin
        response.headers[.accessControlAllowCredentials] = "true"
        response.headers[.accessControlExposeHeaders] = "Retry-After, WWW-Authenticate"
    }
}

extension HTTPField.Name {
    static let secFetchSite = HTTPField.Name("Sec-Fetch-Site")!
}
