// Sets the wall clock of the program that it is preloaded into, as a file says at that moment: it holds the milliseconds
// by which the clock is shifted, and the epoch milliseconds at which it stands still, 0 while it runs.
// It asks the kernel itself: looking up the functions it replaces may allocate, and an allocator asks for the time.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static volatile const int64_t *setting;

__attribute__((constructor)) static void find_offset(void) {
  const char *path = getenv("PROGRAM_CLOCK");
  int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
  void *mapped = file < 0 ? MAP_FAILED : mmap(NULL, 2 * sizeof *setting, PROT_READ, MAP_SHARED, file, 0);
  if (mapped == MAP_FAILED) abort();
  close(file);
  setting = mapped;
}

int clock_gettime(clockid_t clock, struct timespec *now) {
  int failed = (int)syscall(SYS_clock_gettime, clock, now);
  if (failed || !setting || (clock != CLOCK_REALTIME && clock != CLOCK_REALTIME_COARSE)) return failed;
  int64_t standing = setting[1];
  if (standing) now->tv_sec = 0, now->tv_nsec = 0;
  int64_t shifted = (int64_t)now->tv_sec * 1000 + (standing ? standing : setting[0]);
  now->tv_sec = (time_t)(shifted / 1000);
  now->tv_nsec += shifted % 1000 * 1000000;
  if (now->tv_nsec >= 1000000000) now->tv_sec++, now->tv_nsec -= 1000000000;
  return 0;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
  struct timespec precise;
  (void)zone;
  if (clock_gettime(CLOCK_REALTIME, &precise)) return -1;
  now->tv_sec = precise.tv_sec;
  now->tv_usec = precise.tv_nsec / 1000;
  return 0;
}

time_t time(time_t *now) {
  struct timespec precise;
  time_t seconds = clock_gettime(CLOCK_REALTIME, &precise) ? (time_t)-1 : precise.tv_sec;
  if (now) *now = seconds;
  return seconds;
}

// Valkey 9.1 adds the processor's counter to a wall clock that it reads once per millisecond, and would notice a step, and
// a stop, that much later. It counts with the kernel's clock, and reads the time for each command, on a processor that
// it knows nothing of.
FILE *fopen64(const char *restrict path, const char *restrict mode) {
  if (strcmp(path, "/proc/cpuinfo") == 0) return errno = ENOENT, NULL;
  FILE *(*next)(const char *, const char *) = (FILE * (*)(const char *, const char *)) dlsym(RTLD_NEXT, "fopen");
  return next(path, mode);
}

FILE *fopen(const char *restrict path, const char *restrict mode) { return fopen64(path, mode); }
