import NIOCore
import NIOPosix

/// A port that no outgoing connection of this system has, because it lies below their range. So a server that is started
/// again can bind it again.
func freePort() async throws -> Int {
    while true {
        let port = Int.random(in: 12_000..<20_000)
        let bound = try? await ServerBootstrap(group: .singletonMultiThreadedEventLoopGroup)
            .bind(host: "127.0.0.1", port: port).get()
        guard let bound else { continue }
        try await bound.close()
        return port
    }
}
