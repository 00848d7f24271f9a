# SPDX-License-Identifier: MIT
#
# The C part of the package, twheel._twheel, by cffi in API mode: the compiler compares what is
# declared here with <twheel/table.h>. The module is for the stable ABI of Python.
#
# TWHEEL_LIB=FOLDER has libtwheel in FOLDER/lib and FOLDER/include; without it, the compiler and
# the linker find it where it is installed.
import os

from cffi import FFI

ffi = FFI()
ffi.cdef("""
    struct twheel_table;

    struct twheel_table_options {
        uint32_t size;
        uint32_t backend;
        uint32_t flags;
        uint32_t clock;
        uint64_t tick_ns;
        int32_t fd;
        uint32_t reserved;
    };

    struct twheel_table_change {
        uint32_t number;
        int32_t result;
        uint64_t deadline_ns;
    };

    #define TWHEEL_TABLE_NEVER ...
    #define TWHEEL_TABLE_PROCESS ...
    #define TWHEEL_TABLE_DEVICE ...
    #define TWHEEL_TABLE_MONOTONIC ...
    #define TWHEEL_TABLE_BOOTTIME ...
    #define TWHEEL_TABLE_REALTIME ...
    #define TWHEEL_TABLE_TAI ...
    #define TWHEEL_TABLE_VIRTUAL ...
    #define TWHEEL_TABLE_AFTER ...
    #define TWHEEL_TABLE_IDLE ...
    #define TWHEEL_TABLE_PENDING ...
    #define TWHEEL_TABLE_UNREAD ...

    int32_t twheel_table_open(struct twheel_table **table, uint32_t nr,
                              const struct twheel_table_options *options);
    void twheel_table_close(struct twheel_table *table);
    uint32_t twheel_table_nr(const struct twheel_table *table);
    uint32_t twheel_table_backend(const struct twheel_table *table);
    int32_t twheel_table_start(struct twheel_table *table, uint32_t number,
                               uint64_t deadline_ns);
    int32_t twheel_table_start_after(struct twheel_table *table, uint32_t number,
                                     uint64_t delay_ns);
    int32_t twheel_table_stop(struct twheel_table *table, uint32_t number);
    int32_t twheel_table_apply(struct twheel_table *table, struct twheel_table_change *changes,
                               uint32_t nr, uint32_t flags);
    int32_t twheel_table_expired(struct twheel_table *table, uint32_t *numbers, uint32_t nr,
                                 uint64_t timeout_ns);
    int32_t twheel_table_state(struct twheel_table *table, uint32_t number,
                               uint64_t *deadline_ns);
    int32_t twheel_table_fd(struct twheel_table *table);
    uint64_t twheel_table_next(struct twheel_table *table);
    uint64_t twheel_table_now(struct twheel_table *table);
    int32_t twheel_table_advance(struct twheel_table *table, uint64_t to_ns);
""")

folder = os.environ.get("TWHEEL_LIB")
folders = {} if not folder else {
    "include_dirs": [os.path.join(folder, "include")],
    "library_dirs": [os.path.join(folder, "lib")],
    "runtime_library_dirs": [os.path.join(folder, "lib")],
}
ffi.set_source("twheel._twheel", "#include <twheel/table.h>", libraries=["twheel"], **folders)

if __name__ == "__main__":
    ffi.compile(verbose=True)
