/* Sets the wall clock of one process while it runs: what LEASEWAY_TEST_CLOCK names is a file of eight bytes, by how many ns the clock is
   ahead. Preloaded (LD_PRELOAD). Clocks that nobody sets stay as they are. The system's own clock is not set: so what waits until a time of
   the set one (librdkafka does) is given that time by the system's. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

static const volatile long long *ahead;
static int (*real)(clockid_t, struct timespec *);

__attribute__((constructor)) static void begin(void) {
  const char *path = getenv("LEASEWAY_TEST_CLOCK");
  int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
  if (file < 0) return;
  void *there = mmap(NULL, sizeof *ahead, PROT_READ, MAP_SHARED, file, 0);
  close(file);
  if (there != MAP_FAILED) ahead = there;
}

int clock_gettime(clockid_t clock, struct timespec *at) {
  if (!real) real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
  int failed = real(clock, at);
  if (failed || !ahead || (clock != CLOCK_REALTIME && clock != CLOCK_REALTIME_COARSE)) return failed;
  long long ns = at->tv_sec * 1000000000LL + at->tv_nsec + *ahead;
  at->tv_sec = ns / 1000000000LL;
  at->tv_nsec = ns % 1000000000LL;
  return 0;
}

int gettimeofday(struct timeval *restrict at, void *restrict zone) {
  (void)zone;
  struct timespec now;
  if (clock_gettime(CLOCK_REALTIME, &now)) return -1;
  at->tv_sec = now.tv_sec;
  at->tv_usec = now.tv_nsec / 1000;
  return 0;
}

time_t time(time_t *at) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  if (at) *at = now.tv_sec;
  return now.tv_sec;
}

/* A time of a clock that nobody sets is since the start of the machine: much less than one since 1970. */
static const struct timespec *system_time(const struct timespec *at, struct timespec *moved) {
  if (!ahead || at->tv_sec < 1000000000LL) return at;
  long long ns = at->tv_sec * 1000000000LL + at->tv_nsec - *ahead;
  moved->tv_sec = ns / 1000000000LL;
  moved->tv_nsec = ns % 1000000000LL;
  return moved;
}

int pthread_cond_timedwait(pthread_cond_t *restrict cond, pthread_mutex_t *restrict mutex, const struct timespec *restrict until) {
  static int (*wait)(pthread_cond_t *, pthread_mutex_t *, const struct timespec *);
  struct timespec moved;
  /* glibc has an older one of that name for programs of before 2003, which dlsym may give. */
  if (!wait) wait = (int (*)(pthread_cond_t *, pthread_mutex_t *, const struct timespec *))dlvsym(RTLD_NEXT, "pthread_cond_timedwait", "GLIBC_2.3.2");
  if (!wait) wait = (int (*)(pthread_cond_t *, pthread_mutex_t *, const struct timespec *))dlsym(RTLD_NEXT, "pthread_cond_timedwait");
  return wait(cond, mutex, system_time(until, &moved));
}

int sem_timedwait(sem_t *restrict sem, const struct timespec *restrict until) {
  static int (*wait)(sem_t *, const struct timespec *);
  struct timespec moved;
  if (!wait) wait = (int (*)(sem_t *, const struct timespec *))dlsym(RTLD_NEXT, "sem_timedwait");
  return wait(sem, system_time(until, &moved));
}

int cnd_timedwait(cnd_t *restrict cond, mtx_t *restrict mutex, const struct timespec *restrict until) {
  static int (*wait)(cnd_t *, mtx_t *, const struct timespec *);
  struct timespec moved;
  if (!wait) wait = (int (*)(cnd_t *, mtx_t *, const struct timespec *))dlsym(RTLD_NEXT, "cnd_timedwait");
  return wait(cond, mutex, system_time(until, &moved));
}
