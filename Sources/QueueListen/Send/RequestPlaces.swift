// The numbers of a sender's requests, and the places in which the server keeps the answers to them.

/// Numbers a sender's requests, and gives each a place on the server.
///
/// The server keeps the answer to a request in the request's place, so that a request that is sent twice takes effect
/// once. A request may use the place of an earlier one when that is not sent again. The server refuses a late copy of
/// the earlier request, because its number is lower.
struct RequestPlaces {
    /// A place has 2 bytes.
    static let capacity = 1 << 16

    private var lastNumber = 0
    private var free: [Int] = []
    /// For each place, the last request that was confirmed, and until when Redis certainly keeps its answer.
    private var confirmed: [(number: Int, until: Duration)] = []

    /// Returns the number of a new request, and its place; without a place if there are `capacity` requests already.
    mutating func take() -> (number: Int, place: Int?) {
        lastNumber += 1
        if let place = free.popLast() { return (lastNumber, place) }
        guard confirmed.count < Self.capacity else { return (lastNumber, nil) }
        confirmed.append((0, .zero))
        return (lastNumber, confirmed.count - 1)
    }

    /// Frees the place of a request that is not sent again.
    mutating func release(_ place: Int) { free.append(place) }

    /// A request in a place was confirmed. Redis keeps the answer until then at least.
    mutating func confirm(_ number: Int, in place: Int, until end: Duration) { confirmed[place] = (number, end) }

    /// The number of the last request in a place whose answer Redis must have; 0 for none.
    func confirmed(in place: Int, at time: Duration) -> Int {
        confirmed[place].until > time ? confirmed[place].number : 0
    }

    /// Forgets which requests were confirmed: what Redis has lost of them is sent again.
    mutating func forgetConfirmed() { for place in confirmed.indices { confirmed[place] = (0, .zero) } }
}
