// The 2 MiB pages of this host, for one test at a time: tests take all that are free. Threads: one.
#pragma once

#include <fcntl.h>
#include <sys/file.h>

#include <fstream>
#include <string>

#include "base/fd.h"

namespace viaduct::testing {

// Waits until no other test has the pages. Lends the pool some for the test, if it has none free
// and this process may do so.
class HugePages {
 public:
  HugePages() : lock_(::open(kFolder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
    if (!lock_ || ::flock(lock_.get(), LOCK_EX) != 0) return;
    before_ = number("nr_hugepages");
    if (before_ >= 0 && number("free_hugepages") < kWanted) set(before_ + kWanted);
  }
  ~HugePages() {
    if (set_) set(before_);
  }
  HugePages(const HugePages&) = delete;
  HugePages& operator=(const HugePages&) = delete;
  static bool enough() { return number("free_hugepages") >= kWanted; }

 private:
  static constexpr long kWanted = 8;
  static constexpr const char* kFolder = "/sys/kernel/mm/hugepages/hugepages-2048kB/";
  static long number(const char* name) {
    std::ifstream file(std::string(kFolder) + name);
    long out = -1;
    return file >> out ? out : -1;
  }
  void set(long pages) {
    std::ofstream file(std::string(kFolder) + "nr_hugepages");
    file << pages << std::flush;
    set_ = true;
  }

  base::Fd lock_;
  long before_ = -1;
  bool set_ = false;
};

}  // namespace viaduct::testing
