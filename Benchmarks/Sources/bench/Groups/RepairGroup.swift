import Foundation
import RedisDCTesting

extension Plan {
    /// Measures what it costs a process to remember its sends and signals for the case of a failover.
    func repair(_ url: String, _ table: inout Table) throws {
        for operation in RepairCost.Operation.allCases {
            for placement in Placement.allCases {
                for kind in ["remembered", "control"] {
                    let output = try worker(
                        "repair", url, sizes.repairPairs, randomPrefix(), placement, [operation.rawValue, kind]
                    ).rest()
                    add(try decode(output), operation, placement, isControl: kind == "control", &table)
                }
            }
        }
    }

    private func add(
        _ result: RepairCost.Result, _ operation: RepairCost.Operation, _ placement: Placement, isControl: Bool,
        _ table: inout Table
    ) {
        let group = "Remembering for a failover: \(operation.title), 64 tasks, TCP, % more, \(placement.title)"
        let name = isControl ? "neither remembers (control)" : "one of two remembers"
        for (what, excess) in [("processor time", result.processorTime), ("duration", result.duration)] {
            table.add(
                group, "\(name), \(what)", excess.median,
                also: [("from, 95 %", excess.least), ("to, 95 %", excess.greatest)], isCompared: false,
                goal: !isControl && what != "duration" ? "at most 3" : nil)
        }
    }
}
