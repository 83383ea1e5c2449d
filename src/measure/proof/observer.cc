#include "measure/proof/observer.h"

#include <time.h>

#include <algorithm>
#include <filesystem>
#include <thread>
#include <utility>

#include "host/facts.h"
#include "measure/proof/memory_rate.h"

namespace viaduct::measure::proof {
namespace {

// A clock that all processes of a host share.
std::uint64_t now() {
  timespec at{};
  ::clock_gettime(CLOCK_MONOTONIC, &at);
  return static_cast<std::uint64_t>(at.tv_sec) * 1'000'000'000U +
         static_cast<std::uint64_t>(at.tv_nsec);
}

std::string networkNamespace(const std::string& root) {
  std::error_code none;
  return std::filesystem::read_symlink(root + "/proc/self/ns/net", none).string();
}

}  // namespace

Observer::Observer(std::vector<std::string> rails, std::string root) : root_(std::move(root)) {
  const host::Facts facts = host::facts(root_);
  seen_.place = {.hostname = facts.hostname,
                 .boot_id = facts.boot_id,
                 .network = networkNamespace(root_),
                 .devices = host::devices(root_),
                 .rails = std::move(rails),
                 .memory = {}};
}

void Observer::measureMemory() { seen_.place.memory = measureMemoryRates(); }

Reading Observer::read() const { return {.at_ns = now(), .counters = host::readCounters(root_)}; }

void Observer::before() {
  seen_.claims.clear();
  seen_.quiet = read();
  std::this_thread::sleep_for(kLookAround);
  seen_.before = read();
  seen_.after = seen_.before;
}

void Observer::after(std::vector<Claim> claims) {
  seen_.after = read();
  seen_.claims = std::move(claims);
}

}  // namespace viaduct::measure::proof
