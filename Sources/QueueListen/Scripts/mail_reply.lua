-- The end of a script that has composed its reply and writes nothing.
return reply
