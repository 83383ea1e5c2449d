// A network namespace for a part of a test. Threads: any.
#pragma once

#include <gtest/gtest.h>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <cstring>
#include <thread>

#include "base/fd.h"

namespace viaduct::testing {

inline bool raiseLoopback() {
  const base::Fd socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  ifreq request{};
  std::strcpy(request.ifr_name, "lo");
  request.ifr_flags = IFF_UP | IFF_RUNNING;
  return ::ioctl(socket.get(), SIOCSIFFLAGS, &request) == 0;
}

// Runs `body` in its own network namespace, where other programs do not change the loopback's
// counters. False: this user may not make one, so `body` uses the host's loopback.
template <class F>
bool onAQuietNetwork(F body) {
  bool quiet = false;
  std::thread([&] {
    quiet = ::unshare(CLONE_NEWNET) == 0;
    if (quiet) {
      EXPECT_TRUE(raiseLoopback());
    }
    body();
  }).join();
  return quiet;
}

}  // namespace viaduct::testing
