/* A model of the functions of Windows that hlo/system/windows.py calls, on POSIX, for tests on Linux.

   From Microsoft's reference of the Win32 API: argument orders, widths, results. A mutex and a condition variable are
   one word each, zero at first, as on Windows: the word holds the address of one of POSIX. */

#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

typedef uint32_t DWORD;
typedef int32_t BOOL;

static long calls;
long model_calls(void) { return calls; }

static void *made(void **word, size_t size) {
    void *found = __atomic_load_n(word, __ATOMIC_SEQ_CST);
    if (found == NULL) {
        void *fresh = calloc(1, size), *expected = NULL;
        if (__atomic_compare_exchange_n(word, &expected, fresh, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) return fresh;
        free(fresh);
        found = expected;
    }
    return found;
}

static pthread_mutex_t *mutex_of(void **word) { return made(word, sizeof(pthread_mutex_t)); }
static pthread_cond_t *condition_of(void **word) { return made(word, sizeof(pthread_cond_t)); }

void AcquireSRWLockExclusive(void **lock) { calls++; pthread_mutex_lock(mutex_of(lock)); }
void ReleaseSRWLockExclusive(void **lock) { pthread_mutex_unlock(mutex_of(lock)); }
void WakeConditionVariable(void **condition) { pthread_cond_signal(condition_of(condition)); }

BOOL SleepConditionVariableSRW(void **condition, void **lock, DWORD milliseconds, uint32_t flags) {
    if (milliseconds != 0xFFFFFFFFu || flags != 0) abort();
    return pthread_cond_wait(condition_of(condition), mutex_of(lock)) == 0;
}

BOOL SwitchToThread(void) { return sched_yield() == 0; }

void Sleep(DWORD milliseconds) {
    struct timespec time = {milliseconds / 1000, (long)(milliseconds % 1000) * 1000000};
    if (milliseconds != 1) abort();
    nanosleep(&time, NULL);
}

/* One console: it may obey ANSI's codes of colours (mode 4) unless it is old. */
DWORD console_mode = 3;
BOOL console_is_old = 0;
void *GetStdHandle(DWORD which) { return which == (DWORD)-11 ? &console_mode : NULL; }
BOOL GetConsoleMode(void *console, DWORD *mode) {
    if (console != &console_mode) return 0;
    *mode = console_mode;
    return 1;
}
BOOL SetConsoleMode(void *console, DWORD mode) {
    if (console != &console_mode || (console_is_old && mode > 3)) return 0;
    console_mode = mode;
    return 1;
}

/* Ten million a second, as on most machines. */
BOOL QueryPerformanceFrequency(int64_t *rate) { *rate = 10000000; return 1; }
BOOL QueryPerformanceCounter(int64_t *count) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    *count = (int64_t)now.tv_sec * 10000000 + now.tv_nsec / 100;
    return 1;
}

DWORD GetCurrentThreadId(void) { return (DWORD)syscall(SYS_gettid); }

DWORD TlsAlloc(void) {
    pthread_key_t key;
    return pthread_key_create(&key, NULL) ? 0xFFFFFFFFu : (DWORD)key;
}
void *TlsGetValue(DWORD key) { return pthread_getspecific(key); }
BOOL TlsSetValue(DWORD key, void *value) { return pthread_setspecific(key, value) == 0; }

void *CreateThread(void *security, size_t stack, void *start, void *argument, DWORD flags, DWORD *id) {
    pthread_t *thread = malloc(sizeof *thread);
    calls++;
    if (security != NULL || stack != 0 || flags != 0 || id != NULL) abort();
    if (pthread_create(thread, NULL, (void *(*)(void *))start, argument)) { free(thread); return NULL; }
    return thread;
}
BOOL CloseHandle(void *handle) { pthread_detach(*(pthread_t *)handle); free(handle); return 1; }

/* The size of a block is in the page before it, since VirtualFree is not told; it takes whole blocks only. */
static const DWORD COMMIT = 0x1000, RESERVE = 0x2000, RELEASE = 0x8000, RESET = 0x80000;
void *VirtualAlloc(void *address, size_t size, DWORD how, DWORD access) {
    char *start;
    calls++;
    if (how == RESET) return madvise(address, size, MADV_DONTNEED) ? NULL : address;
    if (address != NULL || (how != RESERVE && how != (RESERVE | COMMIT))) abort();
    if (access != (how == RESERVE ? 1u : 4u)) abort();
    start = mmap(NULL, size + 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (start == MAP_FAILED) return NULL;
    *(size_t *)start = size;
    return start + 4096;
}
BOOL VirtualFree(void *address, size_t size, DWORD how) {
    char *start = (char *)address - 4096;
    if (size != 0 || how != RELEASE) abort();
    return munmap(start, *(size_t *)start + 4096) == 0;
}

void *GetCurrentProcess(void) { return (void *)(intptr_t)-1; }
BOOL K32GetProcessMemoryInfo(void *process, void *counters, DWORD size) {
    uint64_t resident = 12345 * 4096;
    if (process != (void *)(intptr_t)-1 || size != 72) return 0;
    memset(counters, 0, size);
    memcpy((char *)counters + 16, &resident, 8);
    return 1;
}

/* A core, a cache of instructions, two of data, a shared one: 32 bytes each. */
BOOL GetLogicalProcessorInformation(void *buffer, DWORD *size) {
    static const struct { uint32_t relation; uint8_t level; uint32_t bytes, kind; } rows[] = {
        {0, 0, 0, 0}, {2, 1, 1 << 15, 1}, {2, 1, 48 << 10, 2}, {2, 2, 2 << 20, 0}, {2, 2, 1 << 20, 0}, {2, 3, 9 << 20, 0},
    };
    DWORD needed = 32 * sizeof rows / sizeof rows[0];
    size_t k;
    if (buffer == NULL || *size < needed) { *size = needed; return 0; }
    memset(buffer, 0, needed);
    for (k = 0; k < sizeof rows / sizeof rows[0]; k++) {
        char *row = (char *)buffer + 32 * k;
        memcpy(row + 8, &rows[k].relation, 4);
        memcpy(row + 16, &rows[k].level, 1);
        memcpy(row + 20, &rows[k].bytes, 4);
        memcpy(row + 24, &rows[k].kind, 4);
    }
    *size = needed;
    return 1;
}
