import Hummingbird
import Logging

/// Answers each error of a call with a problem.
struct ProblemMiddleware<Context: RequestContext>: RouterMiddleware {
    let logger: Logger

    func handle(
        _ request: Request, context: Context, next: (Request, Context) async throws -> Response
    ) async throws -> Response {
        do { return try await next(request, context) } catch {
            return Problem(error, in: request.uri.path, logger).response(from: request, context: context)
        }
    }
}
