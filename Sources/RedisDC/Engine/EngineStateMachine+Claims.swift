// What the state machine knows of an operation of a caller: a claim with its state, or a call.

extension EngineStateMachine {
    /// A claim on permits or on a place, from the caller's request to its release.
    struct Claim {
        /// The first associated value is the number of the request that made the claim.
        enum State {
            /// Not sent yet: there is no session, or `maxPending` requests are in flight.
            case idle
            /// Sent, not answered.
            case requested(UInt64)
            /// In the queue on the server.
            case queued(UInt64)
            /// The caller gave up; the release is in flight. The caller receives this error when it completes, or after
            /// `settleTimeout`.
            indirect case abandoned(UInt64, RedisDCError)
            /// Granted as a lease.
            case held(UInt64, fence: UInt64)
            /// The release, or the transfer to another resource, is in flight. The operation, if any, receives the
            /// outcome of the release.
            case releasing(UInt64, fence: UInt64, ID?)

            /// Why the server does not know the request yet; `nil` when it does.
            func delay(isLive: Bool) -> String? {
                switch self {
                case .idle where !isLive: "the session with Redis has not begun"
                case .idle: "\(maxPending) requests are in flight"
                case .requested: "Redis has not answered"
                case .queued, .abandoned, .held, .releasing: nil
                }
            }
        }
        var state = State.idle
        var request: Acquire
        /// The limit of the caller's wait; `nil` for none.
        var limit: WaitLimit?
        /// The slot of the request, and of the claim; `nil` until it is sent.
        var slot: Int?
        /// The family that serves the claim's release.
        var family: Family
        /// Whether the release of the claim that this one replaces (`Acquire.Detail.releases`) has begun.
        var hasReleasedReplacedClaim = false
        /// Whether the process has the item that the lease has taken from a buffer.
        var hasItem = false

        /// The operation that ends the claim, which the request with this number has made.
        func release(_ number: UInt64) -> Release {
            Release(request.resource, claim: number, family, cohort: request.cohort)
        }

        /// The number of the request that made the claim.
        var number: UInt64? {
            switch state {
            case .idle: nil
            case .requested(let number), .queued(let number), .abandoned(let number, _), .held(let number, _),
                .releasing(let number, _, _):
                number
            }
        }
    }

    /// An operation that is not a claim.
    struct Call {
        var operation: any EngineOperation
        /// The slot of the claim that it is about, if any.
        var slot: Int?
        /// The number of its request; `nil` until it is sent.
        var number: UInt64?
        /// Whether an attempt failed that may have taken effect.
        var mayHaveRun = false
    }
}
