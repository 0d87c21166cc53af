-- For scripts that obey limits: those of the mailbox, or else of the caller.
-- ARGV[3] most messages  [4] most bytes  [5] ms that a message is kept, 0: for ever  [6] when full: r reject, d drop oldest
--     [7] ms after which an unused mailbox is gone, 0: never  [8] messages kept beyond acknowledgement  [9] ms that they
--     are kept beyond acknowledgement  [10] ms after which an unseen device is forgotten
local limits = {ARGV[3], ARGV[4], ARGV[5], ARGV[6], ARGV[7], ARGV[8], ARGV[9], ARGV[10]}
