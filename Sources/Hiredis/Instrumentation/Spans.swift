#if TracingSupport
    import Tracing

    /// Spans by OpenTelemetry's database conventions.
    struct Spans: Sendable {
        private let tracer: any Tracer
        private let address: String
        private let port: Int?
        private let database: Int

        init(_ tracer: any Tracer, _ configuration: RedisConfiguration) {
            self.tracer = tracer
            switch configuration.endpoint {
            case .tcp(let host, let port): (address, self.port) = (host, port)
            case .unixSocket(let path): (address, self.port) = (path, nil)
            }
            database = configuration.database
        }

        func measure<Value>(
            _ operation: String, size: Int, _ body: () async throws(RedisError) -> Value
        ) async throws(RedisError) -> Value {
            // An error that leaves the closure would be recorded with its text, and a server's text may contain a key.
            try await tracer.withAnySpan(operation, ofKind: .client) { span -> Result<Value, RedisError> in
                span.attributes["db.system.name"] = "redis"
                span.attributes["db.operation.name"] = operation
                span.attributes["db.namespace"] = "\(database)"
                span.attributes["server.address"] = address
                if let port { span.attributes["server.port"] = port }
                if size > 1 { span.attributes["db.operation.batch.size"] = size }
                do throws(RedisError) {
                    return .success(try await body())
                } catch {
                    // The first word of a server's error is its kind; the rest may contain a key.
                    let kind = String(error.message.prefix { $0 != " " })
                    span.attributes["db.response.status_code"] = error.isServerReply ? kind : nil
                    span.attributes["error.type"] = error.code.description
                    span.setStatus(.init(code: .error))
                    return .failure(error)
                }
            }.get()
        }
    }

    extension RedisError {
        fileprivate var isServerReply: Bool {
            let kind = message.prefix { $0 != " " }
            return !kind.isEmpty && kind.allSatisfy { $0.isUppercase && $0.isASCII }
        }
    }
#endif
