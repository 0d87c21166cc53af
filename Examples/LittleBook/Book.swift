/// The catalogue of all problems. A new problem is one line here and one file in the folder of its
/// chapter.
public enum Book {
    /// All problems, in the order of the book.
    public static let problems: [any Problem] = [
        Signaling(),
        Rendezvous(),
        MutualExclusion(),
        Multiplex(),
        SingleBarrier(),
        ReusableBarrier(),
        PreloadedTurnstile(),
        Queue(),
        ExclusiveQueue(),
        ProducerConsumer(),
        FiniteBuffer(),
        ReadersWriters(),
        NoStarveReadersWriters(),
        WriterPriority(),
        NoStarveMutex(),
        Footman(),
        LeftHander(),
        Tanenbaum(),
        CigaretteSmokers(),
        GeneralizedSmokers(),
        DiningSavages(),
        Barbershop(),
        FIFOBarbershop(),
        HilzerBarbershop(),
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

    /// Returns the problem with a name; `nil` if there is none.
    public static func problem(_ name: String) -> (any Problem)? { problems.first { $0.name == name } }
}
