extension LocalSentinel {
    /// Separates a master from all other servers and from the sentinels, as a network partition does.
    ///
    /// ```swift
    /// try await withLocalSentinel(.init(isSplittable: true)) { sentinel in
    ///     let old = try await sentinel.master()
    ///     try await sentinel.separate(old)
    ///     let new = try await sentinel.waitForMaster(otherThan: old)
    ///     #expect(new.port != old.port)
    ///     // Clients of old.url are on its side of the partition, those of sentinel.url on the other.
    ///     try await sentinel.reunite(old)
    ///     try await sentinel.waitUntilHealthy()     // the old master follows the new one
    /// }
    /// ```
    ///
    /// Connections between the two sides stay open, and carry nothing. The side of the server consists
    /// of itself and the clients of its own port (``LocalRedis/url``); clients that know it from the
    /// sentinels are on the other side.
    ///
    /// - Parameter server: a master. The connection that a replica has opened to its master would not
    ///   be separated.
    /// - Throws: ``LocalRedisError`` with the code ``LocalRedisError/Code/notHealthy`` if the servers
    ///   are not splittable: see ``Configuration/isSplittable``.
    public func separate(_ server: LocalRedis) async throws {
        try await self.requiredProxy(of: server).stall()
    }

    /// Ends the separation of a server. The connections that were separated break.
    ///
    /// - Throws: what ``separate(_:)`` throws.
    public func reunite(_ server: LocalRedis) async throws {
        try await self.requiredProxy(of: server).reunite()
    }

    private func requiredProxy(of server: LocalRedis) throws -> FaultProxy {
        guard let proxy = self.proxy(of: server) else {
            throw LocalRedisError(
                .notHealthy, "cannot separate the server on port \(server.port): set isSplittable in the configuration")
        }
        return proxy
    }
}
