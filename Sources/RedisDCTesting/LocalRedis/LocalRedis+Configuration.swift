extension LocalRedis {
    /// How a ``LocalRedis`` is to run. The default is an empty server without persistence, password or TLS.
    ///
    /// Whatever is set here, the server listens on 127.0.0.1 and on a Unix socket only, keeps its files in a private
    /// folder, and allows `DEBUG` to local clients where the server has a switch for it (Redis 7 and Valkey).
    public struct Configuration: Sendable {
        /// What the server keeps on disk.
        public enum Persistence: Sendable, Hashable {
            /// Nothing: a restart begins empty.
            case none
            /// Every write is appended to a file.
            case appendOnly(fsync: Fsync)
            /// A snapshot, written only on demand: by `SAVE` or `BGSAVE`, or by ``LocalRedis/shutdown()``.
            ///
            /// ``LocalRedis/kill()`` loses what was written since the last one.
            case snapshot
        }

        /// When the append-only file is forced to disk.
        ///
        public enum Fsync: String, Sendable, Hashable {
            /// Before each answer: a killed server loses nothing that it has answered.
            case always = "always"
            /// About once a second. A killed server seldom loses anything, because the kernel has the bytes; but while the
            /// disk is slow Redis answers and keeps the bytes to itself for up to two seconds.
            case everySecond = "everysec"
        }

        /// The server program, as a name on the `PATH` or as a path; if nil, `redis-server`, else `valkey-server`.
        public var binary: String?
        /// What the server keeps on disk; nothing by default.
        public var persistence: Persistence
        /// The default user's password (`requirepass`), any text; none by default.
        public var password: String?
        /// ACL users, each as the text of a rule after `user`: `"alice on >secret ~* &* +@all"`.
        public var aclUsers: [String]
        /// Certificates to open a TLS port with, beside the plain one; none by default.
        ///
        /// Client certificates are verified if they are sent and not demanded; `extra` of `"tls-auth-clients yes"`
        /// demands them.
        public var tls: TestCertificates?
        /// Lines for the end of the server's configuration file, such as `"maxclients 20"`. They win over the rest.
        public var extra: [String]
        /// Whether starting waits until the data has been loaded (the default), not only until the server answers.
        ///
        /// It cannot be told when the default user is off and there is no ``password``: the server then refuses the
        /// question in both states, and starting does not wait.
        public var waitUntilLoaded: Bool
        /// How long the server may take to answer, a minute by default: on a machine that is busy with tests it does not take
        /// milliseconds.
        public var startTimeout: Duration

        /// Makes a configuration; each parameter is the property of the same name.
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
