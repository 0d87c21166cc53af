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

    /// The part of a URL with the password, if there is one.
    var userInfo: String { self.configuration.password.map { ":\($0.percentEncoded)@" } ?? "" }
}

extension String {
    /// The text with all characters that have a meaning in a URL as `%HH`.
    var percentEncoded: String {
        let unreserved = CharacterSet(
            charactersIn: "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
        return self.addingPercentEncoding(withAllowedCharacters: unreserved) ?? self
    }
}
