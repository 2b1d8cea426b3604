/*
 * Stands between a program and its files (LD_PRELOAD), for those below the directory SHIM_DIRECTORY.
 *
 * Content that was synced is copied to files in SHIM_SYNCED, named by inode: it is what a power loss leaves for sure.
 * SHIM_CUT=n ends the process before its n-th write or sync. SHIM_FAIL_WRITE=n and SHIM_FAIL_SYNC=n let the n-th write or
 * sync fail with EIO, and all that follow.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#define FILES 4096

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static const char *directory, *synced;
static long cut, fail_write, fail_sync, calls, writes, syncs;

/* What was written to a file since its last sync. */
static struct {
    ino_t inode;
    off_t from, to;
} dirty[FILES];

static ssize_t (*real_write)(int, const void *, size_t);
static ssize_t (*real_pwrite)(int, const void *, size_t, off_t);
static ssize_t (*real_writev)(int, const struct iovec *, int);
static int (*real_truncate)(int, off_t);
static int (*real_fsync)(int), (*real_fdatasync)(int);
static int (*real_open)(const char *, int, ...);

static long number(const char *name) {
    const char *value = getenv(name);
    return value ? atol(value) : 0;
}

__attribute__((constructor)) static void begin(void) {
    real_write = dlsym(RTLD_NEXT, "write");
    real_pwrite = dlsym(RTLD_NEXT, "pwrite64");
    real_writev = dlsym(RTLD_NEXT, "writev");
    real_truncate = dlsym(RTLD_NEXT, "ftruncate64");
    real_fsync = dlsym(RTLD_NEXT, "fsync");
    real_fdatasync = dlsym(RTLD_NEXT, "fdatasync");
    real_open = dlsym(RTLD_NEXT, "open64");
    directory = getenv("SHIM_DIRECTORY");
    synced = getenv("SHIM_SYNCED");
    cut = number("SHIM_CUT");
    fail_write = number("SHIM_FAIL_WRITE");
    fail_sync = number("SHIM_FAIL_SYNC");
}

static int is_ours(int fd, struct stat *file) {
    char link[64], path[4096];
    if (!directory || fstat(fd, file) || !S_ISREG(file->st_mode))
        return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path - 1);
    size_t prefix = strlen(directory);
    return length > (ssize_t)prefix && !strncmp(path, directory, prefix) && path[prefix] == '/';
}

static void shadow(ino_t inode, char path[4096]) {
    snprintf(path, 4096, "%s/%lu", synced, (unsigned long)inode);
}

static int entry(ino_t inode) {
    int at = inode % FILES;
    while (dirty[at].inode && dirty[at].inode != inode)
        at = (at + 1) % FILES;
    dirty[at].inode = inode;
    return at;
}

static void touch(ino_t inode, off_t from, off_t to) {
    int at = entry(inode);
    if (dirty[at].to == 0 || from < dirty[at].from)
        dirty[at].from = from;
    if (to > dirty[at].to)
        dirty[at].to = to;
}

/* Copies what was written to a file to that which a power loss leaves. */
static void keep(int fd, const struct stat *before) {
    static char buffer[1 << 16];
    char link[64], path[4096];
    struct stat file;
    int at = entry(before->st_ino);
    if (!synced || fstat(fd, &file))
        return;
    shadow(file.st_ino, path);
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    int from = real_open(link, O_RDONLY), to = real_open(path, O_WRONLY | O_CREAT, 0644);
    off_t position = dirty[at].from;
    while (position < dirty[at].to) {
        size_t most = dirty[at].to - position;
        ssize_t count = pread(from, buffer, most < sizeof buffer ? most : sizeof buffer, position);
        if (count <= 0)
            break;
        real_pwrite(to, buffer, count, position);
        position += count;
    }
    real_truncate(to, file.st_size);
    close(from);
    close(to);
    dirty[at].from = dirty[at].to = 0;
}

/* Whether the call is to fail. */
static int call(long *kind, long fail) {
    if (cut && ++calls >= cut)
        _exit(99);
    return fail && ++*kind >= fail;
}

#define FAIL(result)                                                                               \
    do {                                                                                           \
        pthread_mutex_unlock(&lock);                                                               \
        errno = EIO;                                                                               \
        return result;                                                                             \
    } while (0)

ssize_t write(int fd, const void *bytes, size_t count) {
    struct stat file;
    if (!is_ours(fd, &file))
        return real_write(fd, bytes, count);
    pthread_mutex_lock(&lock);
    if (call(&writes, fail_write))
        FAIL(-1);
    ssize_t written = real_write(fd, bytes, count);
    off_t end = lseek(fd, 0, SEEK_CUR);
    if (written > 0)
        touch(file.st_ino, end - written, end);
    pthread_mutex_unlock(&lock);
    return written;
}

ssize_t writev(int fd, const struct iovec *parts, int count) {
    struct stat file;
    if (!is_ours(fd, &file))
        return real_writev(fd, parts, count);
    pthread_mutex_lock(&lock);
    if (call(&writes, fail_write))
        FAIL(-1);
    ssize_t written = real_writev(fd, parts, count);
    off_t end = lseek(fd, 0, SEEK_CUR);
    if (written > 0)
        touch(file.st_ino, end - written, end);
    pthread_mutex_unlock(&lock);
    return written;
}

ssize_t pwrite64(int fd, const void *bytes, size_t count, off_t at) {
    struct stat file;
    if (!is_ours(fd, &file))
        return real_pwrite(fd, bytes, count, at);
    pthread_mutex_lock(&lock);
    if (call(&writes, fail_write))
        FAIL(-1);
    ssize_t written = real_pwrite(fd, bytes, count, at);
    if (written > 0)
        touch(file.st_ino, at, at + written);
    pthread_mutex_unlock(&lock);
    return written;
}

int ftruncate64(int fd, off_t size) {
    struct stat file;
    if (!is_ours(fd, &file))
        return real_truncate(fd, size);
    pthread_mutex_lock(&lock);
    if (call(&writes, fail_write))
        FAIL(-1);
    int result = real_truncate(fd, size);
    pthread_mutex_unlock(&lock);
    return result;
}

static int sync_file(int fd, int (*real)(int)) {
    struct stat file;
    if (!is_ours(fd, &file))
        return real(fd);
    pthread_mutex_lock(&lock);
    if (call(&syncs, fail_sync))
        FAIL(-1);
    /* The disk itself is not asked: nothing here loses its power. */
    keep(fd, &file);
    pthread_mutex_unlock(&lock);
    return 0;
}

int fsync(int fd) { return sync_file(fd, real_fsync); }
int fdatasync(int fd) { return sync_file(fd, real_fdatasync); }

/* A new file may have the inode of a removed one. */
int open64(const char *name, int flags, ...) {
    va_list arguments;
    va_start(arguments, flags);
    mode_t mode = flags & O_CREAT ? va_arg(arguments, mode_t) : 0;
    va_end(arguments);
    int fd = real_open(name, flags, mode);
    struct stat file;
    if (fd >= 0 && flags & (O_CREAT | O_TRUNC) && is_ours(fd, &file) && file.st_size == 0 && synced) {
        char path[4096];
        pthread_mutex_lock(&lock);
        int at = entry(file.st_ino);
        dirty[at].from = dirty[at].to = 0;
        shadow(file.st_ino, path);
        if (flags & (O_EXCL | O_TRUNC))
            unlink(path);
        pthread_mutex_unlock(&lock);
    }
    return fd;
}
