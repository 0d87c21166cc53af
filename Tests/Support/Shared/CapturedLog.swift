#if LoggingSupport
    import Hiredis
    package import Logging

    /// A log handler that keeps its lines.
    package final class CapturedLog: LogHandler {
        package struct Line: Sendable {
            package var level: Logger.Level
            package var message: String
            package var metadata: [String: String]
        }

        private let kept = Locked<[Line]>([])
        package init() {}
        package var lines: [Line] { kept.withLock { $0 } }

        package func log(event: LogEvent) {
            let metadata = (event.metadata ?? [:]).mapValues { "\($0)" }
            let line = Line(level: event.level, message: "\(event.message)", metadata: metadata)
            kept.withLock { $0.append(line) }
        }

        // The library does not use these.
        package subscript(metadataKey _: String) -> Logger.Metadata.Value? {
            get { nil }
            set {}
        }
        package var metadata: Logger.Metadata {
            get { [:] }
            set {}
        }
        package var logLevel: Logger.Level {
            get { .trace }
            set {}
        }
    }
#endif
