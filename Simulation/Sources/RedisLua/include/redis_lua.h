// An interpreter that runs scripts as a Redis server does: without a way to keep a state, and with redis.call.
//
// A script leaves nothing behind: its globals are read-only, as are the tables of the libraries, and it has no function
// that reaches the tables behind them. So one interpreter serves any number of servers, and a compiled script is used
// again.
#ifndef REDIS_LUA_H
#define REDIS_LUA_H

#include <stddef.h>

// A byte string that belongs to the caller.
typedef struct {
    const char *bytes;
    size_t length;
} redis_lua_bytes;

typedef struct redis_lua redis_lua;

// Executes a command of a script. It pushes its reply with the functions below, exactly one value. Returns 1 if the
// reply is an error, which it pushes with redis_lua_push_error, else 0.
typedef int (*redis_lua_command)(void *context, redis_lua *lua, int count, const redis_lua_bytes *arguments);

// The outcome of a run.
typedef enum {
    REDIS_LUA_RETURNED, // The value of the script is on the stack.
    REDIS_LUA_RAISED,   // An error is on the stack: see redis_lua_raised.
} redis_lua_outcome;

// A value on the stack.
typedef enum {
    REDIS_LUA_NIL,
    REDIS_LUA_FALSE,
    REDIS_LUA_TRUE,
    REDIS_LUA_NUMBER,
    REDIS_LUA_STRING,
    REDIS_LUA_TABLE,
    REDIS_LUA_OTHER,
} redis_lua_kind;

// Makes an interpreter, or returns NULL if there is no memory. It is freed with redis_lua_close.
redis_lua *redis_lua_open(redis_lua_command command);
void redis_lua_close(redis_lua *lua);

// How numbers become arguments of commands: with 17 digits, or with as few as identify the number.
typedef size_t (*redis_lua_number_format)(void *context, double number, char *buffer, size_t size);
void redis_lua_set_number_format(redis_lua *lua, redis_lua_number_format format);

// Compiles a script. Returns its reference; or -1, with the message on the stack.
int redis_lua_compile(redis_lua *lua, redis_lua_bytes text);

// Runs a compiled script.
redis_lua_outcome redis_lua_run(
    redis_lua *lua, int reference, void *context, int key_count, const redis_lua_bytes *keys, int argument_count,
    const redis_lua_bytes *arguments);

// An error that a script has raised.
typedef struct {
    redis_lua_bytes message;
    redis_lua_bytes source; // the name of the chunk, or empty if it is not known
    redis_lua_bytes line;
} redis_lua_error;
redis_lua_error redis_lua_raised(redis_lua *lua);

// The value on top of the stack.
redis_lua_kind redis_lua_top(redis_lua *lua);
double redis_lua_top_number(redis_lua *lua);
redis_lua_bytes redis_lua_top_string(redis_lua *lua);
// Push a field of the table on top of the stack.
void redis_lua_push_element(redis_lua *lua, int index);
void redis_lua_push_field(redis_lua *lua, const char *name);
void redis_lua_pop(redis_lua *lua);
void redis_lua_clear(redis_lua *lua);
// Whether there is room for another level of nesting.
int redis_lua_has_room(redis_lua *lua);

// Replies of commands.
void redis_lua_push_bytes(redis_lua *lua, redis_lua_bytes bytes);
void redis_lua_push_number(redis_lua *lua, double number);
void redis_lua_push_false(redis_lua *lua);
void redis_lua_push_status(redis_lua *lua, redis_lua_bytes text);
void redis_lua_push_error(redis_lua *lua, redis_lua_bytes text);
void redis_lua_push_array(redis_lua *lua, int count);
// Pops the value on top of the stack and makes it an element of the array below it, from 1.
void redis_lua_set_element(redis_lua *lua, int index);

// Numbers as text, as the C library reads and writes them.
size_t redis_lua_format_number(double number, char *buffer, size_t size);
// Returns 1 if all of the text is a number.
int redis_lua_parse_number(const char *text, size_t length, double *number);

#endif
