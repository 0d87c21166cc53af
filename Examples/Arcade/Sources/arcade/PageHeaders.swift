import HTTPTypes
import Hummingbird

/// Headers by which browsers load and run only what the arcade serves, also when a text of a player reaches a page, and
/// show the pages in no frame of another site.
struct PageHeaders<Context: RequestContext>: RouterMiddleware {
    private static var policy: String {
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; base-uri 'none'; "
            + "form-action 'none'; frame-ancestors 'none'"
    }

    func handle(
        _ request: Request, context: Context, next: (Request, Context) async throws -> Response
    ) async throws -> Response {
        var response = try await next(request, context)
        response.headers[HTTPField.Name("Content-Security-Policy")!] = Self.policy
        response.headers[HTTPField.Name("X-Content-Type-Options")!] = "nosniff"
        return response
    }
}
