// Declarations that the files of the interpreter share.
#ifndef INTERPRETER_H
#define INTERPRETER_H

#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>

#include "redis_lua.h"

struct redis_lua {
    lua_State *state;
    redis_lua_command command;
    redis_lua_number_format format;
    void *context; // that of the current run
};

// The interpreter of a state.
redis_lua *interpreter_of(lua_State *state);

// The functions of the table redis, and those of the table struct.
extern const luaL_Reg redis_functions[];
extern const luaL_Reg struct_functions[];

// Makes the environment of the scripts. The table of the globals is below the name "globals" in the registry.
void make_environment(lua_State *state);

// Pushes {err = message}. Takes the message from the stack.
void make_error_table(lua_State *state);
// Sets the fields source and line of the table on top of the stack to the place of the running script.
void set_place(lua_State *state);

#endif
