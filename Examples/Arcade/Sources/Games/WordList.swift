/// A dictionary for the word game.
public struct WordList: Sendable {
    /// Common words of three to eight letters.
    public static let common = WordList(
        """
        able above acid actor adapt after again agent agree ahead alarm album alert alien alike alive allow alone
        along alter amaze among amount angel anger angle angry ankle ant apart ape apple april apron arc area arena
        argue arm army around arrow art ash aside ask ate atom attic aunt autumn avoid awake award away axis baby back
        bacon badge bag bake balance ball banana band bank bar barn base basil basin basket bat bath beach bead beak
        beam bean bear beard beast beat bed bee beef beer begin bell belt bench bend berry best bet bid big bike bill
        bin bird birth bit bite black blade blame blank blanket blaze blend blind block blood bloom blow blue board
        boat body boil bold bolt bone book boot border born both bottle bottom bow bowl box boy brain brake branch
        brand brave bread break breath breeze brick bride bridge brief bright bring broad brook broom brother brown
        brush bubble bucket bud bug build bulb bull bun bundle burn bus bush busy butter button buy cabin cable cage
        cake calf call calm camel camera camp can canal candle candy cane canoe canvas cap cape car card care cargo
        carpet carrot carry cart case castle cat catch cattle cause cave cedar ceiling cell cellar cent chain chair
        chalk chance change chapter charm chart chase cheap cheek cheer cheese cherry chess chest chief child chill
        chimney chin choice choose circle city claim clay clean clear clerk clever cliff climb clock close cloth cloud
        clover club coach coal coast coat cob cod code coffee coil coin cold collar colour comb come comet common cook
        cool cop copper copy coral core cork corn corner cost cot cotton couch count country couple courage course
        court cousin cover cow crab cradle craft crane crash crayon cream creek crew crisp crop cross crowd crown
        crumb crust cry cub cube cup curl curtain curve cushion cut cycle daily dairy daisy dam dance danger dark date
        dawn day deal dear debt deck deep deer delay demand den dense desert desk detail dew dial diamond dig dine
        dinner dip dirt dish dive dock doctor dog doll dolphin donkey door dot double dough dove down dozen draft
        dragon drain draw dream dress drift drill drink drive drop drum dry duck due dull duo dust duty eager eagle
        ear early earn earth ease east easy eat echo edge eel egg ego eight elbow elder elf elm empty end enemy engine
        enjoy enter entire equal era error escape even evening event ever exact exit expect extra eye fabric face fact
        fad fade fail fair fall false fame family fan fancy far farm fast fat father fault fear feast feather fed fee
        feel fence fern ferry fetch fever few fiddle field fifty fig fight file fill film fin find fine finger finish
        fire firm first fish fit five fix flag flame flash flat flavour flea fleet flesh float flock flood floor flour
        flow flower fluid flute fly foam foe fog fold folk follow food foot forest forget fork form fort fossil
        fountain four fox frame free fresh friend frog front frost fruit fry fuel full fun funny fur gain gallery game
        gap garage garden garlic gas gate gather gaze gear gel gem gentle get ghost giant gift gin ginger girl give
        glad glass globe glory glove glow glue goal goat god gold good goose got grain grand grape grass gravel great
        green grey grill grin grip group grow guard guess guest guide guitar gulf gum gun gut guy habit had hag hail
        hair half hall ham hammer hand handle happy harbour hard harvest has hat hawk hay hazel head heal heap hear
        heart heat heavy hedge heel height helmet help hen her herb herd hero hid hide high hill him hint hip hire hit
        hive hog hold hole holiday hollow home honest honey hood hook hop hope horn horse host hot hotel hour house
        hug hum human hunt hurry husk hut ice idea idle ill image imp inch ink inn insect ire island item its ivory
        ivy jab jacket jam jar jaw jelly jet jewel jig job jog join joke jot journey joy judge jug juice jump jungle
        jury just keg kettle key kick kid kin kind king kiss kit kitchen kite kitten knee knife knight knock knot lab
        label lace lad ladder lady lag lake lamb lamp land lane lap large last late laugh law lawn lay lazy lead leaf
        league learn leather leave led left leg lemon lend length lens lesson let letter level lid lie lift light lily
        limb lime line linen lion lip list listen lit little live lizard load loaf local lock log lonely long look
        loop loose lord lose lot loud love low loyal luck lunch lung machine mad magic magnet maid mail main make man
        mango map maple marble march mark market marsh mask mass mast master mat match may meadow meal mean meat medal
        meet mellow melon melt member men mend menu mercy merry message met metal middle mild mile milk mill mind mine
        mint minute mirror mist mix mob model modern mom moment money monkey month moon mop moral morning moss moth
        mother motor mount mouse mouth move mow mud mug mule muscle museum music nail name nap napkin narrow nation
        nature near neat neck need needle nerve nest net never new next nice night nine noble nod noise noon nor north
        nose not note novel now number nun nurse nut oak oar oasis oat object ocean odd off offer office oil old olive
        one onion open opt orange orb orbit orchard order ore organ other otter our out oval oven over owe owl own
        owner oyster pack pad paddle page pail paint pair pal palace pale palm pan panda paper parade parcel parent
        park parrot part party pass past paste pat path pause paw pay pea peace peach peak pear pearl peel peg pen
        pencil people pepper per perch perfect pet phone photo piano pick picnic picture pie piece pig pigeon pile
        pillow pilot pin pine pink pipe pit place plain plan plane planet plant plate play plenty plot plough plum ply
        pocket pod poem poet point polar pole police pond pony pool poor pop port post pot potato pound powder power
        praise pretty price pride prince print prize pro proof proud prune pub public pull pump pup pupil puppy pure
        purple purse push put puzzle quack quail quality quarter queen quest quick quiet quill quilt quite quiz rabbit
        race radio raft rag rail rain raise ram ramp ran ranch range rap rapid rare rat raven raw ray reach read ready
        real reason record red reed reef relax rent repair reply rest result rib ribbon rice rich rid ride ridge rig
        right rim ring rip ripe rise river road roast rob robin robot rock rocket rod roll roof room root rope rose
        rot rough round route row royal rub rubber rude rug rule rum run rush rust sad saddle safe sag sail salad salt
        same sand sap sat sauce save saw say scale scarf scene scent school science scissors score scout screen sea
        seal season seat second secret seed self sell send sense set seven sew shade shadow shake shape share shark
        sharp she shed sheep sheet shelf shell shield shine ship shirt shoe shop shore short shot shoulder shout show
        shower shrimp shy side sign silent silk silly silver simple sin sing single sink sip sir sister sit six size
        skate sketch ski skill skin skirt sky slate sleep slice slide slim slip slope slow sly small smart smell smile
        smoke smooth snail snake snow soap sob sock sofa soft soil solar solid son song soon sort soul sound soup sour
        south sow soy spa space spade spark speak speed spell spice spider spin spirit spoon sport spot spring spy
        square squash stable stack staff stage stair stall stamp stand star start state station stay steak steam steel
        stem step stick still stir stone stool stop store storm story stove straw stream street string strong study
        stuff style sub sue sugar suit sum summer sun supper sure swamp swan sweet swift swim swing sword tab table
        tag tail tailor take tale talk tall tame tan tank tap tar target taste tax taxi tea teach team tear teeth tell
        temple ten tennis tent test thank the theme thick thin thing think third thorn thread three throat throne
        throw thumb thunder tic ticket tide tidy tie tiger tile time tin tiny tip tired title toast toe tomato ton
        tone tongue tool tooth top torch tot total touch tour tow towel tower town toy track trade trail train tray
        treat tree trick trip trout truck true trumpet trunk trust truth try tub tug tulip tuna tune tunnel turkey
        turn turtle twelve twenty twin twist two umbrella uncle under uniform unit upper urban urge urn use useful
        valley value van vase velvet verse very vest vet view village vine violet violin visit voice volcano vote vow
        voyage wage wagon waist wait wake walk wall walnut wander want war warm was wash wasp watch water wave wax way
        weak wealth wear weather web wed wedding week weigh well west wet whale wheat wheel whip whisper whistle white
        who whole why wide wife wig wild willow win wind window wine wing winter wire wise wish wit woe wolf woman won
        wonder woo wood wool word work world worm worth wrap wren wrist write wrong yak yam yap yard yarn yaw year
        yell yellow yes yet yoga young youth zap zebra zero zest zip zone zoo
        """)

    /// The words, each once.
    public let words: [String]
    private let set: Set<String>

    /// A dictionary of the words of a text.
    public init(_ text: String) {
        set = Set(text.split { $0.isWhitespace }.map { String($0) })
        words = set.sorted()
    }

    /// Whether a word is in the dictionary.
    public func contains(_ word: String) -> Bool { set.contains(word) }
}
