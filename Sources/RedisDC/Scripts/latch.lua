-- A latch is created closed, unless it counts from 0. Its permits are the number that it counts up to.
if not resource then free = limit == 0 and OPEN or 0 end
