// The devices of mailboxes, which are known from the first login of a device until the end of its session.
import QueueListen

extension Gateway {
    /// Carries out a read or an acknowledgement of a session's device, after making the device known again if the mailbox
    /// does not have it.
    ///
    /// If it has not, Redis has lost data, or the session has ended: a node that was held up meanwhile must not bring back
    /// what the logout has forgotten.
    ///
    /// - Throws: `unknown-session` and `logged-in-elsewhere` if the session has ended; what `body` throws.
    func withDevice<Result>(
        of session: Session, _ reader: DeviceReader, _ body: () async throws -> Result
    ) async throws -> Result {
        while true {
            do { return try await body() } catch let error as QueueListenError where error.code == .unknownDevice {
                try await sessions.check(session.id)
                _ = try await register(reader, of: session)
            }
        }
    }

    /// Makes the device of a session known, unless the session has ended meanwhile.
    ///
    /// - Returns: the position up to which the device has acknowledged.
    /// - Throws: `unknown-session` if the session has ended.
    func register(_ reader: DeviceReader, of session: Session) async throws -> Cursor {
        let cursor = try await makeKnown(reader)
        do { try await sessions.check(session.id) } catch let problem as Problem where problem.kind == .unknownSession {
            // The logout may have forgotten the device before it was registered.
            try await forget(session.device, of: reader.mailbox)
            throw problem
        } catch let problem as Problem where problem.kind == .loggedInElsewhere {
            // The device is that of the newer session.
        }
        return cursor
    }

    /// Makes the device known to the mailbox, and ends none of its readers: those of older sessions end with these, and one of
    /// a newer login must not end, if this login was held up.
    ///
    /// - Returns: the position up to which the device has acknowledged.
    private func makeKnown(_ reader: DeviceReader) async throws -> Cursor {
        // Another login may take the place that has become free.
        for _ in 1...10 {
            do throws(QueueListenError) { return try await reader.mailbox.register(device: reader.device) } catch {
                guard error.code == .conflict else { throw error }
            }
            try await forgetOldestDevice(of: reader.mailbox)
        }
        throw Problem.unavailable("too many devices of the user log in at the same time", mayHaveRun: true)
    }

    /// Ends the session of the device that was not seen for the longest time, and forgets the device.
    private func forgetOldestDevice(of mailbox: Mailbox) async throws {
        guard let oldest = try await mailbox.devices().min(by: { $0.lastSeen < $1.lastSeen }) else { return }
        try await sessions.logout(user: mailbox.name, device: oldest.name)
        try await forget(oldest.name, of: mailbox)
    }

    /// Forgets a device whose session has ended, unless it logs in meanwhile.
    ///
    /// No message is lost to a login at the same moment: it registers the device after its session has begun. Either that
    /// session is found here, or the registration comes after the device was read here, which therefore stays.
    func forget(_ device: String, of mailbox: Mailbox) async throws {
        for _ in 1...10 {
            // By bytes, as the mailbox distinguishes them.
            let known = try await mailbox.devices().first { $0.name.utf8.elementsEqual(device.utf8) }
            guard let known, try await !sessions.exists(user: mailbox.name, device: device) else { return }
            if try await mailbox.forget(known) { return }
            // It was seen meanwhile, by a last read of the session that has ended for example.
        }
        throw Problem.unavailable("the device is in use", mayHaveRun: true)
    }
}
