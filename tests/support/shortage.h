// Periods in which this process cannot open a descriptor, or cannot start a thread. Threads: one
// such period at a time.
#pragma once

#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <fstream>
#include <thread>

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

// A period in which this process can start `left` more threads, because the stacks of more exceed
// its address space.
class ThreadShortage {
 public:
  explicit ThreadShortage(unsigned left) {
    constexpr std::size_t kStack = std::size_t{1} << 30;
    std::thread([] {}).join();  // with the first thread, TSan starts a thread of its own
    EXPECT_EQ(::pthread_getattr_default_np(&before_), 0);
    pthread_attr_t large;
    EXPECT_EQ(::pthread_getattr_default_np(&large), 0);
    EXPECT_EQ(::pthread_attr_setstacksize(&large, kStack), 0);
    EXPECT_EQ(::pthread_setattr_default_np(&large), 0);
    ::pthread_attr_destroy(&large);
    std::uint64_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    EXPECT_EQ(::getrlimit(RLIMIT_AS, &limit_), 0);
    const rlimit less{.rlim_cur = pages * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE)) +
                                  kStack * left + kStack / 2,
                      .rlim_max = limit_.rlim_max};
    EXPECT_EQ(::setrlimit(RLIMIT_AS, &less), 0);
  }
  ~ThreadShortage() {
    EXPECT_EQ(::setrlimit(RLIMIT_AS, &limit_), 0);
    EXPECT_EQ(::pthread_setattr_default_np(&before_), 0);
    ::pthread_attr_destroy(&before_);
  }
  ThreadShortage(const ThreadShortage&) = delete;
  ThreadShortage& operator=(const ThreadShortage&) = delete;

 private:
  pthread_attr_t before_{};
  rlimit limit_{};
};

}  // namespace viaduct::testing
