import Foundation

extension LocalRedis {
    /// The URL of the TCP port, `redis://127.0.0.1:PORT`, including the password if there is one.
    public var url: String { "redis://\(self.userInfo)127.0.0.1:\(self.port)" }

    /// The URL of the Unix socket, `unix:///PATH`, which does not include the password.
    public var unixURL: String { "unix://\(self.socketPath)" }

    /// The URL of the TLS port, `rediss://localhost:PORT`, including the password if there is one.
    ///
    /// Nil if the server has no certificates.
    public var tlsURL: String? { self.tlsPort.map { "rediss://\(self.userInfo)localhost:\($0)" } }

    private var userInfo: String {
        guard let password = self.configuration.password else { return "" }
        let unreserved = CharacterSet(
            charactersIn: "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
        return ":\(password.addingPercentEncoding(withAllowedCharacters: unreserved) ?? password)@"
    }
}
