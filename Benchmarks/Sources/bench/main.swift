import Foundation

let arguments = CommandLine.arguments
switch arguments.dropFirst().first {
case "handoff":
    let peer = Process()
    peer.executableURL = URL(fileURLWithPath: arguments[0])
    let prefix = "bench-\(ProcessInfo.processInfo.processIdentifier)"
    peer.arguments = ["handoff-peer", arguments[2], arguments[3], prefix, arguments[4]]
    try peer.run()
    print(try await Worker.handoff(url: arguments[2], rounds: Int(arguments[3])!, prefix: prefix, placement: Placement(rawValue: arguments[4])!).json)
    peer.waitUntilExit()
case "handoff-a":
    print(try await Worker.handoff(url: arguments[2], rounds: Int(arguments[3])!, prefix: arguments[4], placement: Placement(rawValue: arguments[5])!).json)
case "handoff-peer":
    try await Worker.handoffPeer(url: arguments[2], rounds: Int(arguments[3])!, prefix: arguments[4], placement: Placement(rawValue: arguments[5])!)
case "pushes":
    print(try await Worker.pushes(url: arguments[2], tasks: 64, each: Int(arguments[3])!, placement: Placement(rawValue: arguments[4])!))
default: print("?")
}
