-- The family of barriers, phasers and exchangers: waiters are granted together, as soon as enough of them are alive.
local FAMILY = MEETINGS
