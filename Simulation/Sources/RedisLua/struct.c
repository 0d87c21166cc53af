// The table struct: packs values into byte strings by a format, and unpacks them.
//
// A format is a sequence of letters: < and > for the byte order; b, B, h, H, l, L, i, I, in, In for signed and
// unsigned numbers of 1, 2, 8, 4 and n bytes; d for a double; cn for n bytes, where c0 is a whole string when it is
// packed, and as many bytes as the number before says when it is unpacked. Other letters that Redis knows raise an
// error.

#include "interpreter.h"

#include <stdint.h>
#include <string.h>

// The longest number.
#define MAX_NUMBER_SIZE 8

// A position in a format.
typedef struct {
    const char *next;
    int is_big_endian;
    char option;
    size_t size;
} reader;

static size_t read_size(reader *format, size_t size_if_none) {
    if (*format->next < '0' || *format->next > '9') return size_if_none;
    size_t size = 0;
    while (*format->next >= '0' && *format->next <= '9') size = size * 10 + (size_t)(*format->next++ - '0');
    return size;
}

static void read_number_size(lua_State *state, reader *format) {
    format->size = read_size(format, sizeof(int));
    if (format->size < 1 || format->size > MAX_NUMBER_SIZE) {
        luaL_error(state, "integral size %d is not simulated", (int)format->size);
    }
}

// Reads the next option that stands for a value. Returns 0 at the end.
static int read_option(lua_State *state, reader *format) {
    for (;;) {
        format->option = *format->next;
        if (format->option == 0) return 0;
        format->next++;
        switch (format->option) {
        case '<': format->is_big_endian = 0; break;
        case '>': format->is_big_endian = 1; break;
        case ' ': break;
        case 'b':
        case 'B': format->size = 1; return 1;
        case 'h':
        case 'H': format->size = 2; return 1;
        case 'l':
        case 'L': format->size = 8; return 1;
        case 'd': format->size = sizeof(double); return 1;
        case 'c': format->size = read_size(format, 1); return 1;
        case 'i':
        case 'I': read_number_size(state, format); return 1;
        default: {
            const char *message = lua_pushfstring(
                state, strchr("fTxs!", format->option) != NULL ? "the format option '%c' is not simulated"
                                                               : "invalid format option '%c'",
                format->option);
            luaL_argerror(state, 1, message);
        }
        }
    }
}

// Copies bytes between memory and a packed number.
static void copy_ordered(char *to, const char *from, size_t size, int is_big_endian) {
    if (!is_big_endian) {
        memcpy(to, from, size);
        return;
    }
    for (size_t i = 0; i < size; i++) to[i] = from[size - 1 - i];
}

static void pack_number(lua_State *state, int argument, const reader *format, luaL_Buffer *packed) {
    char bytes[sizeof(double)];
    lua_Number number = luaL_checknumber(state, argument);
    if (format->option == 'd') {
        copy_ordered(bytes, (const char *)&number, sizeof number, format->is_big_endian);
    } else {
        // The low bytes of the number, in two's complement.
        uint64_t integer = number < 0 ? (uint64_t)(int64_t)number : (uint64_t)number;
        char memory[sizeof integer];
        memcpy(memory, &integer, sizeof integer);
        copy_ordered(bytes, memory, format->size, format->is_big_endian);
    }
    luaL_addlstring(packed, bytes, format->size);
}

static int struct_pack(lua_State *state) {
    reader format = {.next = luaL_checkstring(state, 1)};
    luaL_Buffer packed;
    int argument = 1;
    // A missing value counts as nil.
    lua_pushnil(state);
    luaL_buffinit(state, &packed);
    while (read_option(state, &format)) {
        argument++;
        if (format.option == 'c') {
            size_t length;
            const char *bytes = luaL_checklstring(state, argument, &length);
            size_t size = format.size == 0 ? length : format.size;
            // As Redis says it, with the number of the next argument.
            luaL_argcheck(state, length >= size, argument + 1, "string too short");
            luaL_addlstring(&packed, bytes, size);
        } else {
            pack_number(state, argument, &format, &packed);
        }
    }
    luaL_pushresult(&packed);
    return 1;
}

static lua_Number unpack_number(const char *bytes, const reader *format) {
    char ordered[sizeof(uint64_t)] = {0};
    copy_ordered(ordered, bytes, format->size, format->is_big_endian);
    if (format->option == 'd') {
        double number;
        memcpy(&number, ordered, sizeof number);
        return number;
    }
    uint64_t integer;
    memcpy(&integer, ordered, sizeof integer);
    int is_signed = format->option == 'b' || format->option == 'h' || format->option == 'l' || format->option == 'i';
    if (!is_signed) return (lua_Number)integer;
    unsigned unused = 64 - 8 * (unsigned)format->size;
    return (lua_Number)((int64_t)(integer << unused) >> unused);
}

static int struct_unpack(lua_State *state) {
    reader format = {.next = luaL_checkstring(state, 1)};
    size_t length;
    const char *data = luaL_checklstring(state, 2, &length);
    lua_Number first = luaL_optnumber(state, 3, 1);
    luaL_argcheck(state, first >= 1, 3, "offset must be 1 or greater");
    size_t position = (size_t)first - 1;
    int count = 0;
    lua_settop(state, 2);
    while (read_option(state, &format)) {
        size_t size = format.size;
        if (format.option == 'c' && size == 0) {
            if (count == 0 || !lua_isnumber(state, -1)) return luaL_error(state, "format 'c0' needs a previous size");
            size = (size_t)lua_tonumber(state, -1);
            lua_pop(state, 1);
            count--;
        }
        luaL_argcheck(state, size <= length && position <= length - size, 2, "data string too short");
        luaL_checkstack(state, 2, "too many results");
        if (format.option == 'c') {
            lua_pushlstring(state, data + position, size);
        } else {
            lua_pushnumber(state, unpack_number(data + position, &format));
        }
        position += size;
        count++;
    }
    lua_pushnumber(state, (lua_Number)(position + 1));
    return count + 1;
}

const luaL_Reg struct_functions[] = {
    {"pack", struct_pack},
    {"unpack", struct_unpack},
    {NULL, NULL},
};
