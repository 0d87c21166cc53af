// The environment of the scripts: what exists, and that a script can change none of it.
//
// Each table that scripts share is an empty one whose metatable finds the entries in a hidden table, and refuses
// writes. There is no rawset, setfenv or load by which a script could get behind it.

#include "interpreter.h"

#include <string.h>

static int refuse_write(lua_State *state) { return luaL_error(state, "Attempt to modify a readonly table"); }

// The entries of the globals are the upvalue.
static int read_global(lua_State *state) {
    lua_pushvalue(state, 2);
    lua_rawget(state, lua_upvalueindex(1));
    if (!lua_isnil(state, -1)) return 1;
    return luaL_error(
        state, "Script attempted to access nonexistent global variable '%s'",
        lua_type(state, 2) == LUA_TSTRING ? lua_tostring(state, 2) : luaL_typename(state, 2));
}

// A library that Redis has and the simulation does not: its name is the upvalue.
static int refuse_library(lua_State *state) {
    return luaL_error(
        state, "%s.%s is not simulated", lua_tostring(state, lua_upvalueindex(1)),
        lua_type(state, 2) == LUA_TSTRING ? lua_tostring(state, 2) : luaL_typename(state, 2));
}

// Replaces the function or table on top of the stack, which finds entries, by a table that cannot be written.
static void protect(lua_State *state) {
    lua_newtable(state);
    lua_createtable(state, 0, 3);
    lua_pushvalue(state, -3);
    lua_setfield(state, -2, "__index");
    lua_pushcfunction(state, refuse_write);
    lua_setfield(state, -2, "__newindex");
    lua_pushboolean(state, 0);
    lua_setfield(state, -2, "__metatable");
    lua_setmetatable(state, -2);
    lua_remove(state, -2);
}

// The table of the globals is on top of the stack.
static void add_library(lua_State *state, const char *name) {
    protect(state);
    lua_setfield(state, -2, name);
}

static void add_functions(lua_State *state, const char *name, const luaL_Reg *functions) {
    lua_newtable(state);
    for (; functions->name != NULL; functions++) {
        lua_pushcfunction(state, functions->func);
        lua_setfield(state, -2, functions->name);
    }
    add_library(state, name);
}

static void add_missing(lua_State *state, const char *name) {
    lua_pushstring(state, name);
    lua_pushcclosure(state, refuse_library, 1);
    add_library(state, name);
}

// The function pcall of scripts: of the error of a command, it returns the message.
static int protected_call(lua_State *state) {
    luaL_checkany(state, 1);
    int status = lua_pcall(state, lua_gettop(state) - 1, LUA_MULTRET, 0);
    lua_pushboolean(state, status == 0);
    lua_insert(state, 1);
    if (status != 0 && lua_type(state, -1) == LUA_TTABLE) {
        lua_pushliteral(state, "err");
        lua_rawget(state, -2);
        if (lua_type(state, -1) == LUA_TSTRING) {
            lua_replace(state, -2);
        } else {
            lua_pop(state, 1);
        }
    }
    return lua_gettop(state);
}

static const char *const base_names[] = {
    "assert", "error",    "getmetatable", "ipairs", "next",   "pairs",
    "rawget", "rawequal", "select",       "setmetatable", "tonumber", "tostring", "type", "unpack", "xpcall", NULL,
};

// Copies what scripts may use of a table of Lua: all but the excluded names.
static void add_copy(lua_State *state, const char *name, const char *excluded) {
    lua_getglobal(state, name);
    lua_newtable(state);
    lua_pushnil(state);
    while (lua_next(state, -3) != 0) {
        const char *key = lua_tostring(state, -2);
        if (strstr(excluded, key) != NULL) {
            lua_pop(state, 1);
            continue;
        }
        lua_pushvalue(state, -2);
        lua_insert(state, -2);
        lua_settable(state, -4);
    }
    lua_remove(state, -2);
    add_library(state, name);
}

// The methods of strings are those of the protected table.
static void protect_strings(lua_State *state) {
    lua_pushliteral(state, "");
    lua_createtable(state, 0, 2);
    lua_getfield(state, -3, "string");
    lua_setfield(state, -2, "__index");
    lua_pushboolean(state, 0);
    lua_setfield(state, -2, "__metatable");
    lua_setmetatable(state, -2);
    lua_pop(state, 1);
}

void make_environment(lua_State *state) {
    luaL_openlibs(state);
    lua_newtable(state);
    for (const char *const *name = base_names; *name != NULL; name++) {
        lua_getglobal(state, *name);
        lua_setfield(state, -2, *name);
    }
    lua_pushcfunction(state, protected_call);
    lua_setfield(state, -2, "pcall");
    add_copy(state, "string", "dump");
    add_copy(state, "table", "");
    // Numbers that are random for a script would be those of the process.
    add_copy(state, "math", "random randomseed");
    add_functions(state, "redis", redis_functions);
    add_functions(state, "struct", struct_functions);
    add_missing(state, "cjson");
    add_missing(state, "cmsgpack");
    add_missing(state, "bit");
    protect_strings(state);
    lua_pushvalue(state, -1);
    lua_setfield(state, LUA_REGISTRYINDEX, "globals");
    lua_pushvalue(state, -1);
    lua_pushcclosure(state, read_global, 1);
    protect(state);
    lua_pushvalue(state, -1);
    lua_setfield(state, LUA_REGISTRYINDEX, "environment");
    lua_setfield(state, -2, "_G");
    lua_pop(state, 1);
}
