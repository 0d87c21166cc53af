// The headers of Lua 5.1 that are used here. pkg-config knows their folder.
#include <lua.h>
#include <lauxlib.h>
#include <lualib.h>
