extension LocalRedis {
    /// The configuration of a ``LocalRedis``.
    ///
    /// The default is an empty server without persistence, password or TLS. With every
    /// configuration the server listens only on 127.0.0.1 and on a Unix socket, keeps its files in
    /// a private folder, and allows `DEBUG` to local clients if the server has a directive for it
    /// (Redis 7 and Valkey).
    public struct Configuration: Sendable {
        /// The data that the server keeps on disk.
        public enum Persistence: Sendable, Hashable {
            /// No data: the server is empty after a restart.
            case none
            /// All writes, in an append-only file.
            case appendOnly(fsync: Fsync)
            /// A snapshot, written only by `SAVE`, `BGSAVE` and ``LocalRedis/shutdown()``.
            ///
            /// ``LocalRedis/kill()`` loses all writes since the last snapshot.
            case snapshot
        }

        /// The time at which the append-only file is forced to disk.
        public enum Fsync: String, Sendable, Hashable {
            /// Before each reply: a killed server loses no acknowledged write.
            case always = "always"
            /// About once per second.
            ///
            /// A killed server rarely loses a write, because the kernel holds the bytes. While the
            /// disk is slow, however, Redis replies and keeps the bytes in its own memory for up to
            /// two seconds.
            case everySecond = "everysec"
        }

        /// The server program, as a name on the `PATH` or as a path.
        ///
        /// If nil, the environment variable `REDISDC_TEST_SERVER` names the server in the same way.
        /// Without the variable, the server is `redis-server` or, if that is not installed,
        /// `valkey-server`.
        public var binary: String?
        /// The data that the server keeps on disk; none by default.
        public var persistence: Persistence
        /// The password of the default user (`requirepass`), which may be any text; none by
        /// default.
        public var password: String?
        /// The ACL users; none by default.
        ///
        /// Each element is an ACL rule without the word `user`: `"alice on >secret ~* &* +@all"`.
        public var aclUsers: [String]
        /// The certificates of an additional TLS port; nil, the default, for no TLS port.
        ///
        /// The server verifies client certificates that are sent but does not require them; the
        /// line `"tls-auth-clients yes"` in ``extra`` requires them.
        public var tls: TestCertificates?
        /// Additional lines of the server's configuration file, such as `"maxclients 20"`.
        ///
        /// They are appended, and override the lines that the other properties create.
        public var extra: [String]
        /// Whether to wait at the start until the server has loaded its data; true by default.
        ///
        /// If false, the start only waits until the server replies. If the default user is off and
        /// there is no ``password``, the server's replies do not show whether it is loading, and
        /// the start does not wait for it.
        public var waitUntilLoaded: Bool
        /// The maximum time that the server may take to reply after its start; one minute by
        /// default.
        ///
        /// The default is long because a start takes longer on a machine that is busy with tests.
        public var startTimeout: Duration

        /// The role in which the server program is started.
        var kind = ServerKind.dataServer
        /// Files that the server finds in its folder at its first start, by name.
        var files: [String: String] = [:]
        /// Whether a restart keeps the configuration file, because servers rewrite it.
        var keepsConfigFile = false

        /// Creates a configuration.
        ///
        /// - Parameters:
        ///   - binary: the server program; see ``binary``.
        ///   - persistence: the data that the server keeps on disk.
        ///   - password: the password of the default user.
        ///   - aclUsers: the ACL users; see ``aclUsers``.
        ///   - tls: the certificates of an additional TLS port.
        ///   - extra: additional lines of the server's configuration file.
        ///   - waitUntilLoaded: whether to wait at the start until the server has loaded its data.
        ///   - startTimeout: the maximum time that the server may take to reply after its start.
        public init(
            binary: String? = nil,
            persistence: Persistence = .none,
            password: String? = nil,
            aclUsers: [String] = [],
            tls: TestCertificates? = nil,
            extra: [String] = [],
            waitUntilLoaded: Bool = true,
            startTimeout: Duration = .seconds(60)
        ) {
            self.binary = binary
            self.persistence = persistence
            self.password = password
            self.aclUsers = aclUsers
            self.tls = tls
            self.extra = extra
            self.waitUntilLoaded = waitUntilLoaded
            self.startTimeout = startTimeout
        }
    }
}
