// Opens an interpreter, compiles and runs scripts.

#include "interpreter.h"

#include <stdlib.h>
#include <string.h>

// The interpreter is the allocator's argument, which is the fastest to find from a state.
static void *allocate(void *interpreter, void *block, size_t old_size, size_t new_size) {
    (void)interpreter;
    (void)old_size;
    if (new_size == 0) {
        free(block);
        return NULL;
    }
    return realloc(block, new_size);
}

redis_lua *interpreter_of(lua_State *state) {
    void *interpreter;
    lua_getallocf(state, &interpreter);
    return interpreter;
}

redis_lua *redis_lua_open(redis_lua_command command) {
    redis_lua *lua = calloc(1, sizeof *lua);
    if (lua == NULL) return NULL;
    lua->command = command;
    lua->state = lua_newstate(allocate, lua);
    if (lua->state == NULL) {
        free(lua);
        return NULL;
    }
    make_environment(lua->state);
    return lua;
}

void redis_lua_close(redis_lua *lua) {
    lua_close(lua->state);
    free(lua);
}

void redis_lua_set_number_format(redis_lua *lua, redis_lua_number_format format) { lua->format = format; }

int redis_lua_compile(redis_lua *lua, redis_lua_bytes text) {
    if (luaL_loadbuffer(lua->state, text.bytes, text.length, "@user_script") != 0) return -1;
    lua_getfield(lua->state, LUA_REGISTRYINDEX, "environment");
    lua_setfenv(lua->state, -2);
    return luaL_ref(lua->state, LUA_REGISTRYINDEX);
}

// Makes a table of what was raised, which has the place: an error of Lua itself is a string. Runs where it was raised.
static int describe_error(lua_State *state) {
    if (lua_type(state, 1) != LUA_TTABLE) {
        const char *message = lua_tostring(state, 1);
        lua_pushfstring(state, "ERR %s", message != NULL ? message : luaL_typename(state, 1));
        make_error_table(state);
        set_place(state);
        return 1;
    }
    lua_pushvalue(state, 1);
    lua_pushliteral(state, "source");
    lua_rawget(state, 1);
    int has_place = !lua_isnil(state, -1);
    lua_pop(state, 1);
    if (!has_place) set_place(state);
    return 1;
}

static void set_global_list(lua_State *state, const char *name, int count, const redis_lua_bytes *list) {
    lua_createtable(state, count, 0);
    for (int i = 0; i < count; i++) {
        lua_pushlstring(state, list[i].bytes, list[i].length);
        lua_rawseti(state, -2, i + 1);
    }
    lua_setfield(state, -2, name);
}

redis_lua_outcome redis_lua_run(
    redis_lua *lua, int reference, void *context, int key_count, const redis_lua_bytes *keys, int argument_count,
    const redis_lua_bytes *arguments) {
    lua_State *state = lua->state;
    lua_settop(state, 0);
    lua->context = context;
    lua_getfield(state, LUA_REGISTRYINDEX, "globals");
    set_global_list(state, "KEYS", key_count, keys);
    set_global_list(state, "ARGV", argument_count, arguments);
    lua_settop(state, 0);
    lua_pushcfunction(state, describe_error);
    lua_rawgeti(state, LUA_REGISTRYINDEX, reference);
    int status = lua_pcall(state, 0, 1, 1);
    lua->context = NULL;
    return status == 0 ? REDIS_LUA_RETURNED : REDIS_LUA_RAISED;
}

static redis_lua_bytes field_of_top(lua_State *state, const char *name) {
    redis_lua_bytes bytes = {"", 0};
    if (lua_type(state, -1) != LUA_TTABLE) return bytes;
    lua_pushstring(state, name);
    lua_rawget(state, -2);
    // The table keeps the string.
    if (lua_type(state, -1) == LUA_TSTRING) bytes.bytes = lua_tolstring(state, -1, &bytes.length);
    lua_pop(state, 1);
    return bytes;
}

redis_lua_error redis_lua_raised(redis_lua *lua) {
    redis_lua_error error = {
        .message = field_of_top(lua->state, "err"),
        .source = field_of_top(lua->state, "source"),
        .line = field_of_top(lua->state, "line"),
    };
    // An error in the error handler is a string, when there was no memory.
    if (lua_type(lua->state, -1) == LUA_TSTRING) error.message = redis_lua_top_string(lua);
    return error;
}

redis_lua_kind redis_lua_top(redis_lua *lua) {
    switch (lua_type(lua->state, -1)) {
    case LUA_TNIL:
    case LUA_TNONE: return REDIS_LUA_NIL;
    case LUA_TBOOLEAN: return lua_toboolean(lua->state, -1) ? REDIS_LUA_TRUE : REDIS_LUA_FALSE;
    case LUA_TNUMBER: return REDIS_LUA_NUMBER;
    case LUA_TSTRING: return REDIS_LUA_STRING;
    case LUA_TTABLE: return REDIS_LUA_TABLE;
    default: return REDIS_LUA_OTHER;
    }
}

double redis_lua_top_number(redis_lua *lua) { return lua_tonumber(lua->state, -1); }

redis_lua_bytes redis_lua_top_string(redis_lua *lua) {
    redis_lua_bytes bytes;
    bytes.bytes = lua_tolstring(lua->state, -1, &bytes.length);
    return bytes;
}

void redis_lua_push_element(redis_lua *lua, int index) { lua_rawgeti(lua->state, -1, index); }

void redis_lua_push_field(redis_lua *lua, const char *name) {
    lua_pushstring(lua->state, name);
    lua_rawget(lua->state, -2);
}

void redis_lua_pop(redis_lua *lua) { lua_pop(lua->state, 1); }
void redis_lua_clear(redis_lua *lua) { lua_settop(lua->state, 0); }
int redis_lua_has_room(redis_lua *lua) { return lua_checkstack(lua->state, 4); }

void redis_lua_push_bytes(redis_lua *lua, redis_lua_bytes bytes) {
    lua_pushlstring(lua->state, bytes.bytes, bytes.length);
}
void redis_lua_push_number(redis_lua *lua, double number) { lua_pushnumber(lua->state, number); }
void redis_lua_push_false(redis_lua *lua) { lua_pushboolean(lua->state, 0); }

void redis_lua_push_status(redis_lua *lua, redis_lua_bytes text) {
    lua_createtable(lua->state, 0, 1);
    redis_lua_push_bytes(lua, text);
    lua_setfield(lua->state, -2, "ok");
}

void redis_lua_push_error(redis_lua *lua, redis_lua_bytes text) {
    redis_lua_push_bytes(lua, text);
    make_error_table(lua->state);
}

void redis_lua_push_array(redis_lua *lua, int count) { lua_createtable(lua->state, count, 0); }
void redis_lua_set_element(redis_lua *lua, int index) { lua_rawseti(lua->state, -2, index); }
