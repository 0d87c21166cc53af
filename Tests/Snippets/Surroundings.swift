// The names that examples of the documentation use without declaring them.
import GameServices
import Hiredis
import Logging
import QueueListen
import RedisDC
import RedisDCTesting
import ServiceLifecycle
import Testing

// The values that the examples have created before.
var url: String { World.current.server.url }
var redis: RedisClient { World.current.redis }
var coordinator: Coordinator { World.current.coordinator }
var office: PostOffice { World.current.office }
var mailbox: Mailbox { World.current.mailbox }
var mutex: DistributedMutex { World.current.mutex }
var election: Election { World.current.election }
var lobby: PresenceBucket { World.current.lobby }
var server: any Service { Server() }
let logger = Logger(label: "example") { _ in SwiftLogNoOpLogHandler() }
var cursor: Cursor? {
    get { World.current.cursor }
    set { World.current.cursor = newValue }
}

// The program around them.
struct Server: Service {
    func run() async throws {
        note("server runs")
        try await gracefulShutdown()
    }
}
struct Move: Codable, Sendable {
    var from: String
    var to: String
}
struct Card: Codable, Sendable {}
struct Job: Codable, Sendable {}
struct TooManyRequests: Error {}
struct Game: Sendable { func play(_: Move) async { note("game.play") } }
struct Storage: Sendable { func write(_: String, fence: UInt64) async throws { note("storage.write") } }
struct Catalogue: Sendable {
    func price(of _: String) async throws -> Int { 0 }
    func update(_: String, fence: UInt64) async throws { note("catalogue.update") }
}
actor Stock {
    private var items = 0
    var isEmpty: Bool { items == 0 }
    func take() {
        items -= 1
        note("stock.take")
    }
    func add(_: String) { items += 1 }
}
let game = Game()
let storage = Storage()
let catalogue = Catalogue()
var stock: Stock { World.current.stock }
let mine = Card()
let job = Job()
let (data, order, item) = ("", "", "")
var shard: String { "shard-\(World.party)" }
let picture: [UInt8] = []
var isRunning: Bool { World.current.hasTurn() }
var table: [PresenceObject] {
    get { [] }
    set { note("table \(newValue.count)") }
}

func note(_ call: String) { World.current.note(call) }
func print(_ items: Any...) { note("print " + items.map { "\($0)" }.joined(separator: " ")) }
func show(_ items: Any...) { note("show " + items.map { "\($0)" }.joined(separator: " ")) }
func remove(_ key: String) { note("remove \(key)") }
func handle(_ message: ReceivedMessage) { note("handle \(message.text)") }
func resize(_: ReceivedMessage) async throws { note("resize") }
func reloadState() async throws { note("reloadState") }
func readEverythingAgain() async throws { note("readEverythingAgain") }
func cook(fence _: UInt64) async throws { note("cook") }
func schedule(fence _: UInt64) async throws {
    note("schedule")
    try await Task.sleep(for: .milliseconds(5))
}
func transfer(fences _: [UInt64]) async throws { note("transfer") }
func simulate() async throws { note("simulate") }
func publishFrame() async throws { note("publishFrame") }
func importMyPart() async throws { note("importMyPart") }
func play() async throws { note("play") }
func read() async throws { note("read") }
func clean() async throws { note("clean") }
func next() async throws -> Job? { World.current.hasTurn() ? Job() : nil }
func perform(_: Job) async throws { note("perform") }
func isStillConnected(_: String) -> Bool { true }
func putObjects(of owner: PresenceOwner) async throws { note("putObjects \(owner.client)") }
