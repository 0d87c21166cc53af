import Foundation

extension LocalRedis {
    /// `redis://127.0.0.1:PORT`, with the password in it if there is one.
    public var url: String { "redis://\(self.userInfo)127.0.0.1:\(self.port)" }

    /// `unix:///PATH`. It has no place for a password.
    public var unixURL: String { "unix://\(self.socketPath)" }

    /// `rediss://localhost:PORT`, with the password in it if there is one; nil without certificates.
    public var tlsURL: String? { self.tlsPort.map { "rediss://\(self.userInfo)localhost:\($0)" } }

    private var userInfo: String {
        guard let password = self.configuration.password else { return "" }
        let unreserved = CharacterSet(
            charactersIn: "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
        return ":\(password.addingPercentEncoding(withAllowedCharacters: unreserved) ?? password)@"
    }
}
