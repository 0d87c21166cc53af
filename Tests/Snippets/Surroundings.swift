// The names that examples of the documentation use without declaring them. Nothing here runs.
import GameServices
import Hiredis
import Logging
import QueueListen
import RedisDC
import RedisDCTesting
import ServiceLifecycle
import Testing

// The values that the examples have created before.
var redis: RedisClient { fatalError() }
var coordinator: Coordinator { fatalError() }
var office: PostOffice { fatalError() }
var mailbox: Mailbox { fatalError() }
var mutex: DistributedMutex { fatalError() }
var lobby: PresenceBucket { fatalError() }
var server: any Service { fatalError() }
var logger: Logger { fatalError() }
var cursor: Cursor? {
    get { fatalError() }
    set { fatalError() }
}

// The program around them.
struct Move: Codable, Sendable {
    var from: String
    var to: String
}
struct Card: Codable, Sendable {}
struct Job: Codable, Sendable {}
struct TooManyRequests: Error {}
struct Game: Sendable { func play(_: Move) async {} }
struct Storage: Sendable { func write(_: String, fence: UInt64) async throws {} }
struct Catalogue: Sendable {
    func price(of _: String) async throws -> Int { 0 }
    func update(_: String, fence: UInt64) async throws {}
}
actor Stock {
    var isEmpty: Bool { true }
    func take() {}
    func add(_: String) {}
}
let game = Game()
let storage = Storage()
let catalogue = Catalogue()
let stock = Stock()
let mine = Card()
let job = Job()
let (data, order, item, shard) = ("", "", "", "")
let picture: [UInt8] = []
var isRunning: Bool { true }
var table: [PresenceObject] {
    get { [] }
    set {}
}

func show(_: Any...) {}
func remove(_: String) {}
func handle(_: ReceivedMessage) {}
func reloadState() async throws {}
func readEverythingAgain() async throws {}
func cook(fence _: UInt64) async throws {}
func schedule(fence _: UInt64) async throws {}
func transfer(fences _: [UInt64]) async throws {}
func simulate() async throws {}
func publishFrame() async throws {}
func importMyPart() async throws {}
func play() async throws {}
func read() async throws {}
func clean() async throws {}
func next() async throws -> Job? { nil }
func perform(_: Job) async throws {}
func isStillConnected(_: String) -> Bool { true }
func putObjects(of _: PresenceOwner) async throws {}
