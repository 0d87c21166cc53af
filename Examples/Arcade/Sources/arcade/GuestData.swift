import Synchronization

/// The data of guests that other services store under their names.
///
/// Another player can use a guest's name after the guest has left or the account has expired. Both
/// cases remove the data by the same function. The services are created after the accounts, so the
/// function is set later.
final class GuestData: Sendable {
    /// Removes the data of a guest. The session of the device that is named, if any, is kept.
    typealias Removal = @Sendable (_ name: String, _ keptDevice: String?) async throws -> Void

    private let removal = Mutex<Removal>({ _, _ in })

    /// Sets the function that removes the data. It must be idempotent: a removal that fails is repeated.
    func onRemoval(_ removal: @escaping Removal) { self.removal.withLock { $0 = removal } }

    /// Removes the data of a guest, and ends the sessions of all devices except for one.
    func remove(_ name: String, keeping device: String? = nil) async throws {
        try await removal.withLock { $0 }(name, device)
    }
}
