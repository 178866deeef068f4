/* Loads linked machine code (numba_backend/runtime/loader.py) on a processor that is emulated, and calls it.

   run_image kernel IMAGE ENTRY NAMES ARRAYS COUNT   calls kernel(0, COUNT, pointers) on arrays of f32, one after the
                                                     other in the file ARRAYS, and writes them back
   run_image pool IMAGE ENTRY:... NAMES              run_parallel, with workers: adds numbers, prints the sums
   NAMES: functions of the C library whose addresses go into the stubs at the end, separated by commas. */

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static void *function_named(const char *name) {
    static const struct { const char *name; void *address; } known[] = {
        {"memcpy", memcpy}, {"memset", memset}, {"memmove", memmove}, {"malloc", malloc}, {"free", free}, {"strlen", strlen},
    };
    for (size_t k = 0; k < sizeof known / sizeof known[0]; k++)
        if (!strcmp(known[k].name, name)) return known[k].address;
    fprintf(stderr, "no function %s\n", name);
    exit(3);
}

static char *contents(const char *path, size_t *size) {
    struct stat status;
    int file = open(path, O_RDONLY);
    if (file < 0 || fstat(file, &status)) { perror(path); exit(3); }
    *size = (size_t)status.st_size;
    char *found = mmap(NULL, *size + 1, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (size_t at = 0; at < *size;) {
        ssize_t count = read(file, found + at, *size - at);
        if (count <= 0) exit(3);
        at += (size_t)count;
    }
    close(file);
    return found;
}

static char *loaded(const char *path, char *names) {
    size_t size, count = 0;
    char *code = contents(path, &size), *all[64];
    for (char *name = strtok(names, ","); name; name = strtok(NULL, ",")) all[count++] = name;
    for (size_t k = 0; k < count; k++) {
        void *address = function_named(all[k]);
        memcpy(code + size - 16 * (count - k) + 8, &address, 8);
    }
    if (mprotect(code, size, PROT_READ | PROT_EXEC)) exit(3);
    __builtin___clear_cache(code, code + size);
    return code;
}

static int64_t sums[64];
static void add(int64_t lo, int64_t hi, int64_t *arguments) {
    for (int64_t i = lo; i < hi; i++) __atomic_fetch_add(&arguments[i % 64], i, __ATOMIC_SEQ_CST);
    if (hi - lo > 1000) usleep(100);
}

static char block[2048] __attribute__((aligned(64)));
static void put(size_t offset, int64_t word) { memcpy(block + offset, &word, 8); }

int main(int argc, char **argv) {
    if (argc == 7 && !strcmp(argv[1], "kernel")) {
        size_t size, count = strtoul(argv[6], NULL, 10);
        char *code = loaded(argv[2], argv[4]), *arrays = contents(argv[5], &size);
        int64_t pointers[8];
        for (size_t k = 0; k < size / (4 * count); k++) pointers[k] = (int64_t)(arrays + 4 * count * k);
        ((void (*)(int64_t, int64_t, int64_t *))(code + strtoul(argv[3], NULL, 10)))(0, (int64_t)count, pointers);
        FILE *out = fopen(argv[5], "wb");
        return fwrite(arrays, 1, size, out) != size || fclose(out);
    }
#ifdef THREADS
    if (argc == 4 && !strcmp(argv[1], "pool")) {
        char none[] = "";
        char *run_parallel = loaded(argv[2], none), *worker = loaded(argv[3], none);
        put(RUN_PARALLEL, (int64_t)run_parallel);
        put(LOCK, (int64_t)pthread_mutex_lock), put(UNLOCK, (int64_t)pthread_mutex_unlock);
        put(WAIT, (int64_t)pthread_cond_wait), put(SIGNAL, (int64_t)pthread_cond_signal);
        put(YIELD, (int64_t)sched_yield), put(NAP, (int64_t)nanosleep), put(NAP_TIME + 8, 50000), put(SPINS, 100);
        pthread_mutex_init((pthread_mutex_t *)(block + MUTEX), NULL);
        pthread_cond_init((pthread_cond_t *)(block + CONDITION), NULL);
        put(THREADS, 3);
        pthread_t threads[2];
        for (int k = 0; k < 2; k++) pthread_create(&threads[k], NULL, (void *(*)(void *))worker, block);
        for (int turn = 0; turn < 50; turn++) {
            ((int64_t (*)(char *, void *, int64_t *, int64_t, int64_t, int64_t))run_parallel)(
                block, (void *)add, sums, 10000, 64, 0);
            if (turn % 10 == 0) usleep(20000);
        }
        for (int k = 0; k < 64; k++) printf("%ld\n", (long)sums[k]);
        fflush(stdout);
        _exit(0);
    }
#endif
    return 2;
}
