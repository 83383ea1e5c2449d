#include "measure/proof/observer.h"

#include <time.h>

#include <algorithm>
#include <filesystem>
#include <thread>
#include <utility>

#include "base/process_id.h"
#include "host/facts.h"
#include "measure/proof/account.h"
#include "measure/proof/memory_rate.h"

namespace viaduct::measure::proof {
namespace {

// Reads a clock that all processes of a host share.
std::uint64_t now() {
  timespec at{};
  ::clock_gettime(CLOCK_MONOTONIC, &at);
  return static_cast<std::uint64_t>(at.tv_sec) * 1'000'000'000U +
         static_cast<std::uint64_t>(at.tv_nsec);
}

std::uint64_t nanoseconds(std::chrono::nanoseconds time) {
  return static_cast<std::uint64_t>(time.count());
}

std::uint64_t bytesBetween(std::uint64_t before, std::uint64_t after, std::uint32_t unit) {
  const auto delta = host::deltaOf(before, after, unit);
  return delta ? delta->bytes : 0;
}

std::string networkNamespace(const std::string& root) {
  std::error_code none;
  return std::filesystem::read_symlink(root + "/proc/self/ns/net", none).string();
}

}  // namespace

Observer::Observer(std::vector<std::string> rails, std::string root) : root_(std::move(root)) {
  const host::Tree tree(root_);
  seen_.place = {.hostname = host::hostName(),
                 .boot_id = host::bootId(tree),
                 .network = networkNamespace(root_),
                 .process = base::processId(),
                 .devices = host::devices(tree),
                 .rails = std::move(rails),
                 .memory = {}};
}

void Observer::measureMemory() { seen_.place.memory = memoryRates(); }

void Observer::setGpus(std::vector<GpuPlace> gpus, std::vector<GpuRate> rates) {
  seen_.place.gpus = std::move(gpus);
  seen_.place.gpu_rates = std::move(rates);
}

Reading Observer::read() const {
  const host::Tree tree(root_);
  return {.at_ns = now(), .counters = host::readCounters(tree), .disk = host::ownDiskBytes(tree)};
}

void Observer::before() {
  seen_.claims.clear();
  seen_.quiet = read();
  std::this_thread::sleep_for(kLookAround);
  seen_.before = read();
  seen_.after = seen_.before;
}

void Observer::after(std::vector<Claim> claims) {
  seen_.claims = std::move(claims);
  seen_.after = read();
  while (!carriedWhatIsClaimed() && seen_.after.at_ns - seen_.before.at_ns < nanoseconds(kLag)) {
    std::this_thread::sleep_for(kLookAround);
    seen_.after = read();
  }
}

// True if all devices together sent, or received, at least the bytes of all claims.
bool Observer::carriedWhatIsClaimed() const {
  std::uint64_t said = 0, sent = 0, received = 0;
  for (const Claim& claim : seen_.claims)
    for (const PathShare& share : claim.path.shares) {
      const Realm realm = realmOf(share.backend, share.way);
      if (realm == Realm::kSockets || realm == Realm::kRdma) said += share.bytes;
    }
  for (const host::Counter& after : seen_.after.counters)
    for (const host::Counter& before : seen_.before.counters) {
      if (before.device != after.device) continue;
      sent += bytesBetween(before.sent, after.sent, after.unit);
      received += bytesBetween(before.received, after.received, after.unit);
    }
  return std::max(sent, received) >= said;
}

}  // namespace viaduct::measure::proof
