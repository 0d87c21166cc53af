// The list of the problems. A new one is one line here and one file in its chapter's folder.

/// All problems, in the order of the book.
public enum Book {
    public static let problems: [any Problem] = [
        Rendezvous(),
        MutualExclusion(),
        Multiplex(),
        ReusableBarrier(),
        ReadersWriters(),
        Footman(),
        SantaClaus(),
        BuildingH2O(),
        RiverCrossing(),
        RollerCoaster(),
        MultiCarRollerCoaster(),
        SearchInsertDelete(),
        UnisexBathroom(),
        NoStarveUnisexBathroom(),
        BaboonCrossing(),
        ModusHall(),
        SushiBar(),
        ChildCare(),
        ExtendedChildCare(),
        RoomParty(),
        SenateBus(),
        FaneuilHall(),
        ExtendedFaneuilHall(),
        DiningHall(),
        ExtendedDiningHall(),
    ]

    public static func problem(_ name: String) -> (any Problem)? { problems.first { $0.name == name } }
}
