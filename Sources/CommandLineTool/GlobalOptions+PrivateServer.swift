// The private server of a command that may run without one. The only file of the target that imports RedisDCTesting,
// which starts servers: a demonstration should run where none is installed as a service.
import RedisDCTesting

extension GlobalOptions {
    /// Runs `body` with the chosen server, or with a private one that ends with `body` if none is
    /// chosen.
    ///
    /// - Parameter body: receives these options with the server's URL in them, and the port of a
    ///   private server.
    package func withServer(_ body: (GlobalOptions, _ privatePort: Int?) async throws -> Void) async throws {
        var options = self
        if let url = chosenURL {
            options.url = url
            try await body(options, nil)
        } else {
            try await withLocalRedis { server in
                var options = options
                options.url = server.url
                try await body(options, server.port)
            }
        }
    }
}
