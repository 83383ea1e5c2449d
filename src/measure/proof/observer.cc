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

// True if all devices together sent, or received, at least the bytes of all claims.
bool carriedWhatIsClaimed(const Observation& seen) {
  std::uint64_t said = 0, sent = 0, received = 0;
  for (const Claim& claim : seen.claims)
    for (const PathShare& share : claim.path.shares) {
      const Realm realm = realmOf(share.backend, share.way);
      if (realm == Realm::kSockets || realm == Realm::kRdma) said += share.bytes;
    }
  for (const host::Counter& after : seen.after.counters)
    for (const host::Counter& before : seen.before.counters) {
      if (before.device != after.device) continue;
      sent += bytesBetween(before.sent, after.sent, after.unit);
      received += bytesBetween(before.received, after.received, after.unit);
    }
  return std::max(sent, received) >= said;
}

// Adds what was counted from `left` to `back` to an earlier reading, so that it does not count.
void moveOn(Reading& earlier, const Reading& left, const Reading& back) {
  earlier.at_ns += back.at_ns - left.at_ns;
  for (host::Counter& one : earlier.counters)
    for (const host::Counter& then : left.counters)
      for (const host::Counter& now : back.counters) {
        if (one.device != then.device || one.device != now.device) continue;
        one.sent += now.sent - then.sent;
        one.received += now.received - then.received;
      }
  if (!earlier.disk || !left.disk || !back.disk) return;
  earlier.disk->read += back.disk->read - left.disk->read;
  earlier.disk->written += back.disk->written - left.disk->written;
}

}  // namespace

Observer::Observer(std::vector<std::string> rails, std::string root) : root_(std::move(root)) {
  const host::Tree tree(root_);
  place_ = {.hostname = host::hostName(),
            .boot_id = host::bootId(tree),
            .network = networkNamespace(root_),
            .process = base::processId(),
            .devices = host::devices(tree),
            .rails = std::move(rails),
            .memory = {}};
}

void Observer::measureMemory() { place_.memory = memoryRates(); }

void Observer::setGpus(std::vector<GpuPlace> gpus, std::vector<GpuRate> rates) {
  place_.gpus = std::move(gpus);
  place_.gpu_rates = std::move(rates);
}

Reading Observer::read() const {
  const host::Tree tree(root_);
  return {.at_ns = now(), .counters = host::readCounters(tree), .disk = host::ownDiskBytes(tree)};
}

Observation Observer::before() const {
  Observation seen{.place = place_, .quiet = read()};
  std::this_thread::sleep_for(kLookAround);
  seen.before = read();
  seen.after = seen.before;
  return seen;
}

void Observer::resume(Observation& seen) const {
  const Reading present = read();
  for (Reading* const earlier : {&seen.quiet, &seen.before}) moveOn(*earlier, seen.after, present);
  seen.after = present;
}

void Observer::claim(Observation& seen, std::vector<Claim> claims) const {
  seen.claims = std::move(claims);
  while (!carriedWhatIsClaimed(seen) && seen.after.at_ns - seen.before.at_ns < nanoseconds(kLag)) {
    std::this_thread::sleep_for(kLookAround);
    pause(seen);
  }
}

}  // namespace viaduct::measure::proof
