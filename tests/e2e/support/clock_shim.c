// SPDX-License-Identifier: Apache-2.0
//
// Preloaded into a daemon: its time of day is off by the number of seconds that the file in
// HOLDFAST_TEST_SHIFT begins with (a 64 bit integer, read at each call). Other clocks stay.
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static const volatile int64_t* shift;

__attribute__((constructor)) static void Open(void) {
  const char* path = getenv("HOLDFAST_TEST_SHIFT");
  const int fd = path == NULL ? -1 : open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return;
  void* at = mmap(NULL, sizeof *shift, PROT_READ, MAP_SHARED, fd, 0);
  if (at != MAP_FAILED) shift = at;
  close(fd);
}

int clock_gettime(clockid_t clock, struct timespec* now) {
  const int result = (int)syscall(SYS_clock_gettime, clock, now);
  if (result == 0 && shift != NULL && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) {
    now->tv_sec += *shift;
  }
  return result;
}

int gettimeofday(struct timeval* now, void* zone) {
  (void)zone;
  struct timespec ts;
  clock_gettime(CLOCK_REALTIME, &ts);
  now->tv_sec = ts.tv_sec;
  now->tv_usec = ts.tv_nsec / 1000;
  return 0;
}

time_t time(time_t* now) {
  struct timespec ts;
  clock_gettime(CLOCK_REALTIME, &ts);
  if (now != NULL) *now = ts.tv_sec;
  return ts.tv_sec;
}
