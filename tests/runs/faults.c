// Strikes at a chosen file operation under a chosen folder: kills the process, half-way through a write if asked,
// or lets the operation fail. Loaded before libc (LD_PRELOAD) and armed from Python; Linux only.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

enum { KILL = -1, HALF = -2 };  // any other kind is the errno of a failure

static char folder[4096];
static int count, strike_at, strike_kind;

void faults_arm(const char* under, int operation, int kind) {
    snprintf(folder, sizeof folder, "%s", under);
    count = 0;
    strike_at = operation;
    strike_kind = kind;
}

int faults_count(void) { return count; }

static int is_under(const char* path) { return folder[0] && path && strncmp(path, folder, strlen(folder)) == 0; }

static int is_open_under(int descriptor) {
    char link[64], path[4096];
    if (!folder[0]) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
    const ssize_t length = readlink(link, path, sizeof path - 1);
    if (length < 0) return 0;
    path[length] = 0;
    return is_under(path);
}

static int strikes(void) { return ++count == strike_at; }

static int fail(void) {
    if (strike_kind < 0) kill(getpid(), SIGKILL);
    errno = strike_kind;
    return -1;
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

int open64(const char* path, int flags, ...) {
    va_list rest;
    va_start(rest, flags);
    const mode_t mode = flags & O_CREAT ? va_arg(rest, mode_t) : 0;
    va_end(rest);
    if (is_under(path) && (flags & (O_CREAT | O_WRONLY | O_RDWR)) && strikes()) return fail();
    return REAL(open64)(path, flags, mode);
}

ssize_t write(int descriptor, const void* content, size_t length) {
    if (is_open_under(descriptor) && strikes()) {
        if (strike_kind == HALF) REAL(write)(descriptor, content, length / 2);
        return fail();
    }
    return REAL(write)(descriptor, content, length);
}

int fsync(int descriptor) { return is_open_under(descriptor) && strikes() ? fail() : REAL(fsync)(descriptor); }

int ftruncate64(int descriptor, off64_t length) {
    return is_open_under(descriptor) && strikes() ? fail() : REAL(ftruncate64)(descriptor, length);
}

int rename(const char* from, const char* to) { return is_under(to) && strikes() ? fail() : REAL(rename)(from, to); }

int unlink(const char* path) { return is_under(path) && strikes() ? fail() : REAL(unlink)(path); }
