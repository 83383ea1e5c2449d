// A period in which this process cannot open a descriptor. Threads: one such period at a time.
#pragma once

#include <gtest/gtest.h>
#include <sys/resource.h>

namespace viaduct::testing {

class Shortage {
 public:
  Shortage() {
    EXPECT_EQ(::getrlimit(RLIMIT_NOFILE, &before_), 0);
    const rlimit none{.rlim_cur = 0, .rlim_max = before_.rlim_max};
    EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  }
  ~Shortage() { EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &before_), 0); }
  Shortage(const Shortage&) = delete;
  Shortage& operator=(const Shortage&) = delete;

 private:
  rlimit before_{};
};

}  // namespace viaduct::testing
