#include "measure/proof/observer.h"

#include <time.h>

#include <algorithm>
#include <filesystem>
#include <thread>
#include <utility>

#include "base/lists.h"
#include "base/process_id.h"
#include "causes/causes.h"
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

// True if all network devices together sent, or received, at least the bytes of all claims over
// networks.
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

// Calls `each` with the entries of equal names in the three lists.
template <class List, class Name, class Each>
void matched(List& earlier, const List& left, const List& back, Name name, Each each) {
  for (auto& one : earlier)
    for (const auto& then : left)
      for (const auto& now : back)
        if (one.*name == then.*name && one.*name == now.*name) each(one, then, now);
}

void moveCausesOn(Reading& earlier, const Reading& left, const Reading& back) {
  earlier.causes_at_ns += back.causes_at_ns - left.causes_at_ns;
  matched(earlier.links, left.links, back.links, &host::LinkFacts::name,
          [](auto& one, const auto& then, const auto& now) {
            one.dropped += now.dropped - then.dropped;
          });
  matched(earlier.rails, left.rails, back.rails, &RailSockets::rail,
          [](auto& one, const auto& then, const auto& now) {
            causes::add(one.figures, causes::between(then.figures, now.figures));
          });
  earlier.times.ran += back.times.ran - left.times.ran;
  earlier.times.waited += back.times.waited - left.times.waited;
  earlier.times.throttled += back.times.throttled - left.times.throttled;
  earlier.times.busy += back.times.busy - left.times.busy;
}

void addBetween(auto& one, const auto& then, const auto& now) {
  one.sent += now.sent - then.sent;
  one.received += now.received - then.received;
}

void moveDiskOn(host::DiskBytes& one, const host::DiskBytes& then, const host::DiskBytes& now) {
  one.read += now.read - then.read;
  one.written += now.written - then.written;
}

// Excludes the time from `left` to `back`: adds all growth in that time to an earlier reading.
void moveOn(Reading& earlier, const Reading& left, const Reading& back) {
  earlier.at_ns += back.at_ns - left.at_ns;
  matched(earlier.counters, left.counters, back.counters, &host::Counter::device,
          [](auto& one, const auto& then, const auto& now) {
            addBetween(one, then, now);
            if (one.netlink && then.netlink && now.netlink)
              addBetween(*one.netlink, *then.netlink, *now.netlink);
          });
  moveCausesOn(earlier, left, back);
  matched(earlier.devices, left.devices, back.devices, &host::DiskCount::device,
          [](auto& one, const auto& then, const auto& now) {
            moveDiskOn(one.bytes, then.bytes, now.bytes);
          });
  if (earlier.disk && left.disk && back.disk) moveDiskOn(*earlier.disk, *left.disk, *back.disk);
}

}  // namespace

Observer::Observer(std::vector<std::string> rails, std::string root, RailStatisticsOf statistics)
    : root_(std::move(root)), statistics_(std::move(statistics)) {
  const host::Tree tree(root_);
  place_ = {.hostname = host::hostName(),
            .boot_id = host::bootId(tree),
            .network = networkNamespace(root_),
            .process = base::processId(),
            .devices = host::devices(tree),
            .rails = std::move(rails),
            .memory = {}};
}

void Observer::measureMemory(std::uint64_t working_set) {
  place_.memory = memoryRates(working_set);
}

void Observer::setGpus(std::vector<GpuPlace> gpus, std::vector<GpuRate> rates) {
  place_.gpus = std::move(gpus);
  place_.gpu_rates = std::move(rates);
}

void Observer::setFiles(std::span<const std::string> paths) {
  for (const std::string& path : paths)
    if (host::StorageStack one = host::storageUnder(path); !base::contains(place_.storage, one))
      place_.storage.push_back(std::move(one));
}

Reading Observer::read() const {
  const host::Tree tree(root_);
  Reading out{
      .at_ns = now(), .counters = host::readCounters(tree), .disk = host::ownDiskBytes(tree)};
  for (const std::string& device : devicesOf(place_.storage))
    if (auto bytes = host::diskCount(tree, device)) out.devices.push_back(*std::move(bytes));
  return out;
}

void Observer::readCauses(Reading& into) const {
  into.causes_at_ns = now();
  if (root_ == "/") into.links = host::linkFacts();
  into.times = host::processTimes(host::Tree(root_));
  if (!statistics_) return;
  for (const RailStatistics& rail : statistics_())
    if (rail.sockets && rail.sockets->sockets != 0)
      into.rails.push_back({rail.rail, *rail.sockets});
}

Observation Observer::before() const {
  Observation seen{.place = place_, .quiet = read()};
  const host::Tree tree(root_);
  seen.place.kernel = host::kernelStart(tree);
  seen.limits = host::processLimits(tree);
  std::this_thread::sleep_for(kLookAround);
  seen.before = read();
  readCauses(seen.before);
  seen.after = seen.before;
  return seen;
}

void Observer::pause(Observation& seen) const {
  seen.after = read();
  readCauses(seen.after);
}

void Observer::resume(Observation& seen) const {
  Reading present = read();
  readCauses(present);
  for (Reading* const earlier : {&seen.quiet, &seen.before}) moveOn(*earlier, seen.after, present);
  seen.after = present;
}

void Observer::claim(Observation& seen, std::vector<Claim> claims) const {
  seen.claims = std::move(claims);
  while (!carriedWhatIsClaimed(seen) && seen.after.at_ns - seen.before.at_ns < nanoseconds(kLag)) {
    std::this_thread::sleep_for(kLookAround);
    const Reading late = read();
    seen.after.at_ns = late.at_ns;
    seen.after.counters = late.counters;
    seen.after.disk = late.disk;
    seen.after.devices = late.devices;
  }
}

}  // namespace viaduct::measure::proof
