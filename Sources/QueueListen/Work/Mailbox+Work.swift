import CoordinationBase

#if ServiceLifecycleSupport
    import ServiceLifecycle
#endif

extension Mailbox {
    /// Runs the messages of this mailbox as jobs, each at least once, shared with all other processes
    /// that call this.
    ///
    /// ```swift
    /// try await office.mailbox("pictures").work { job in try await resize(job.message) }
    /// ```
    ///
    /// An effect in the same Redis happens exactly once with ``Job/finish(with:keys:arguments:)``, and
    /// elsewhere if it is refused for a message's id that is stored with it already.
    ///
    /// - A message goes to one worker at a time. When the handler returns, the job is done.
    /// - When it throws, the job is tried again after a pause, by any worker. After
    ///   ``WorkConfiguration/attempts``, or after a ``JobRejection``, it counts as failed for good and
    ///   is kept, with the reason.
    /// - When the worker's process dies, or cannot reach Redis for its ``WorkConfiguration/ttl``, its
    ///   jobs run elsewhere. A worker whose process still lives cancels their handlers before.
    /// - Jobs with the same ``Message/orderKey`` run one at a time, in the order in which they were
    ///   sent; others run beside them.
    ///
    /// A mailbox keeps its messages for its other devices as well. All workers together are the device
    /// "workers".
    ///
    /// The call ends when its task is cancelled or a graceful shutdown begins: it takes no more jobs,
    /// waits for those that run, and cancels them after ``WorkConfiguration/grace``.
    ///
    /// - Throws: `.invalidArgument`; `.stopped`, `.notPermitted`, `.wrongType`, `.conflict`,
    ///   `.serverError`. A lost connection is no error.
    public func work(
        _ configuration: WorkConfiguration = .init(), _ handler: @escaping @Sendable (Job) async throws -> Void
    ) async throws(QueueListenError) {
        try configuration.validate()
        let worker = Worker(self, configuration, handler)
        let life = Task { () async -> QueueListenError? in
            do {
                try await worker.run()
                return nil
            } catch { return QueueListenError(error) }
        }
        let failure = await withTaskCancellationHandler {
            #if ServiceLifecycleSupport
                await withGracefulShutdownHandler {
                    await life.value
                } onGracefulShutdown: {
                    worker.stop()
                }
            #else
                await life.value
            #endif
        } onCancel: {
            worker.stop()
        }
        if let failure { throw failure }
    }
}
