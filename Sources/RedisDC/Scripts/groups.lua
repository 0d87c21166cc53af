-- The family of mutexes and semaphores with a light switch: a group holds its permit as one, however many members it
-- has. The first request of a member changes the resource's family from PERMITS to GROUPS.
local FAMILY = GROUPS
