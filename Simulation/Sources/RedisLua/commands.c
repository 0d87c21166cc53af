// The table redis: call, pcall and what makes replies.

#include "interpreter.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ON_THE_STACK 64

void make_error_table(lua_State *state) {
    lua_createtable(state, 0, 3);
    lua_insert(state, -2);
    lua_setfield(state, -2, "err");
}

void set_place(lua_State *state) {
    lua_Debug place;
    // The nearest function that is Lua.
    for (int level = 1; lua_getstack(state, level, &place); level++) {
        lua_getinfo(state, "Sl", &place);
        if (place.currentline <= 0) continue;
        lua_pushstring(state, place.source);
        lua_setfield(state, -2, "source");
        lua_pushfstring(state, "%d", place.currentline);
        lua_setfield(state, -2, "line");
        return;
    }
}

// Ends redis.call with the error table on top of the stack, or redis.pcall with its return.
static int end_with_error(lua_State *state, int raises) {
    if (!raises) return 1;
    set_place(state);
    return lua_error(state);
}

static int end_with_message(lua_State *state, int raises, const char *message) {
    lua_pushstring(state, message);
    make_error_table(state);
    return end_with_error(state, raises);
}

// Replaces an argument that is a number by its text, which the stack then keeps. Returns 0 for another type.
static int read_argument(lua_State *state, int index, redis_lua_bytes *argument) {
    int type = lua_type(state, index);
    if (type == LUA_TNUMBER) {
        char text[400];
        redis_lua *lua = interpreter_of(state);
        size_t length = lua->format != NULL
            ? lua->format(lua->context, lua_tonumber(state, index), text, sizeof text)
            : redis_lua_format_number(lua_tonumber(state, index), text, sizeof text);
        lua_pushlstring(state, text, length);
        lua_replace(state, index);
    } else if (type != LUA_TSTRING) {
        return 0;
    }
    argument->bytes = lua_tolstring(state, index, &argument->length);
    return 1;
}

static int run_command(lua_State *state, int raises) {
    int count = lua_gettop(state);
    if (count == 0) {
        return end_with_message(state, raises, "ERR Please specify at least one argument for this redis lib call");
    }
    redis_lua_bytes few[ON_THE_STACK];
    redis_lua_bytes *arguments = few;
    luaL_checkstack(state, 32, "too many arguments");
    // Lua frees it, also after an error.
    if (count > ON_THE_STACK) arguments = lua_newuserdata(state, sizeof *arguments * (size_t)count);
    for (int i = 0; i < count; i++) {
        if (!read_argument(state, i + 1, &arguments[i])) {
            return end_with_message(state, raises, "ERR Lua redis lib command arguments must be strings or integers");
        }
    }
    redis_lua *lua = interpreter_of(state);
    if (lua->command(lua->context, lua, count, arguments)) return end_with_error(state, raises);
    return 1;
}

static int redis_call(lua_State *state) { return run_command(state, 1); }
static int redis_pcall(lua_State *state) { return run_command(state, 0); }

static int is_one_string(lua_State *state) {
    if (lua_gettop(state) == 1 && lua_type(state, 1) == LUA_TSTRING) return 1;
    lua_settop(state, 0);
    lua_pushstring(state, "ERR wrong number or type of arguments");
    make_error_table(state);
    return 0;
}

// An error without a code gets the code ERR. A code is what stands before a space.
static int redis_error_reply(lua_State *state) {
    if (!is_one_string(state)) return 1;
    const char *text = lua_tostring(state, 1);
    if (text[0] == '-') text++;
    if (strchr(text, ' ') == NULL) {
        lua_pushfstring(state, "ERR %s", text);
    } else {
        lua_pushstring(state, text);
    }
    make_error_table(state);
    return 1;
}

static int redis_status_reply(lua_State *state) {
    if (!is_one_string(state)) return 1;
    lua_createtable(state, 0, 1);
    lua_pushvalue(state, 1);
    lua_setfield(state, -2, "ok");
    return 1;
}

const luaL_Reg redis_functions[] = {
    {"call", redis_call},
    {"pcall", redis_pcall},
    {"error_reply", redis_error_reply},
    {"status_reply", redis_status_reply},
    {NULL, NULL},
};

size_t redis_lua_format_number(double number, char *buffer, size_t size) {
    return (size_t)snprintf(buffer, size, "%.17g", number);
}

int redis_lua_parse_number(const char *text, size_t length, double *number) {
    char copy[256];
    char *end;
    // strtod skips spaces; a zero byte would end the text early.
    if (length == 0 || length >= sizeof copy || text[0] == ' ' || (text[0] >= '\t' && text[0] <= '\r')) return 0;
    memcpy(copy, text, length);
    copy[length] = 0;
    *number = strtod(copy, &end);
    return end == copy + length && *number == *number;
}
