-- Deletes values, when everything has been read and checked. write.lua follows, and Redis allows its writes after a
-- deletion.
if #vdel > 0 then call('HDEL', values, unpack(vdel)) end
