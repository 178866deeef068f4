/* A model of the functions of macOS that POSIX does not have and hlo/system/darwin.py calls, for tests on Linux.

   From Apple's manual pages sysctl(3) and pthread_threadid_np(3), and from libproc.h. */

#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static long calls;
long model_calls(void) { return calls; }

int pthread_threadid_np(pthread_t thread, uint64_t *number) {
    calls++;
    if (thread != (pthread_t)0 || number == NULL) abort();
    *number = (uint64_t)syscall(SYS_gettid);
    return 0;
}

struct value { const char *name; const char *text; uint64_t number; size_t bytes; };
static const struct value values[] = {
    {"machdep.cpu.brand_string", "Apple M9 (model)", 0, 0},
    {"hw.optional.AdvSIMD", NULL, 1, 4},
    {"hw.perflevel0.l1dcachesize", NULL, 128 << 10, 8},
    {"hw.l1dcachesize", NULL, 64 << 10, 8},
    {"hw.l2cachesize", NULL, 4 << 20, 4},
};

int sysctlbyname(const char *name, void *old, size_t *size, void *new_value, size_t new_size) {
    size_t k;
    if (new_value != NULL || new_size != 0) abort();
    for (k = 0; k < sizeof values / sizeof values[0]; k++) {
        const struct value *found = &values[k];
        if (strcmp(found->name, name)) continue;
        if (*size < 64) { errno = ENOMEM; return -1; }
        if (found->text != NULL) { *size = strlen(found->text) + 1; strcpy(old, found->text); }
        else { *size = found->bytes; memcpy(old, &found->number, found->bytes); }
        return 0;
    }
    errno = ENOENT;
    return -1;
}

int proc_pidinfo(int pid, int flavour, uint64_t argument, void *buffer, int size) {
    uint64_t words[2] = {1ull << 34, 12345 * 4096};
    if (pid != getpid() || flavour != 4 || argument != 0 || size != 96) return 0;
    memset(buffer, 0, (size_t)size);
    memcpy(buffer, words, sizeof words);
    return 96;
}
