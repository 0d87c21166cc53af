-- Clears a destroyed or broken resource, in steps that anyone continues: refuses its waiters, and, if it is destroyed,
-- deletes what is stored under its name and then its record.
local FAMILY = 'x'
