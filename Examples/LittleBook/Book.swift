// The list of the problems. A new one is one line here and one file in its chapter's folder.

/// All problems, in the order of the book.
public enum Book {
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
        BuildingH2O(),
    ]

    public static func problem(_ name: String) -> (any Problem)? { problems.first { $0.name == name } }
}
