#include "measure/proof/account.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <tuple>
#include <utility>

#include "base/lists.h"

namespace viaduct::measure::proof {
namespace {

using host::Counter;

const Counter* find(const Reading& reading, const std::string& device) {
  const auto at = std::find_if(reading.counters.begin(), reading.counters.end(),
                               [&](const Counter& c) { return c.device == device; });
  return at == reading.counters.end() ? nullptr : &*at;
}

double seconds(const Reading& from, const Reading& to) {
  return static_cast<double>(to.at_ns - from.at_ns) * 1e-9;
}

Flow flowOf(const Observation& seen, const Counter& before, const Counter* quiet,
            const Counter* after, std::uint64_t Counter::* figure) {
  Flow out;
  if (after != nullptr) out.counted = host::deltaOf(before.*figure, after->*figure, before.unit);
  const double looked = seconds(seen.quiet, seen.before);
  if (quiet == nullptr || looked <= 0) return out;
  if (const auto others = host::deltaOf(quiet->*figure, before.*figure, before.unit))
    out.others = static_cast<double>(others->bytes) / looked * seconds(seen.before, seen.after);
  return out;
}

// Returns a text if two sources (/proc/net/dev and netlink) disagree on how much one figure grew
// from one reading to a later one. Otherwise returns an empty text.
std::string contradiction(const Counter& from, const Counter& to, std::uint64_t Counter::* figure,
                          std::uint64_t host::LinkBytes::* second, std::string_view verb) {
  const std::uint64_t one = to.*figure - from.*figure,
                      other = (*to.netlink).*second - (*from.netlink).*second;
  if (one == other) return {};
  return fmt::format("{} {} B by /proc/net/dev but {} B by netlink", verb, one, other);
}

// Returns why an interface's counter is not believed, or an empty text. RDMA ports have only one
// source, so nothing contradicts it.
std::string doubtOf(const host::Device& device, const Counter* quiet, const Counter* before,
                    const Counter* after) {
  if (device.kind == host::DeviceKind::kRdma || quiet == nullptr || before == nullptr ||
      after == nullptr)
    return {};
  if (!quiet->netlink || !before->netlink || !after->netlink)
    return "counted bytes that netlink does not confirm";
  for (const auto& [from, to] : {std::pair(before, after), std::pair(quiet, before)}) {
    std::string sent = contradiction(*from, *to, &Counter::sent, &host::LinkBytes::sent, "sent");
    if (!sent.empty()) return sent;
    std::string received =
        contradiction(*from, *to, &Counter::received, &host::LinkBytes::received, "received");
    if (!received.empty()) return received;
  }
  return {};
}

CounterDomain domainFrom(const Observation& seen) {
  CounterDomain out{.name = seen.place.hostname.empty() ? "?" : seen.place.hostname,
                    .place = &seen.place,
                    .seconds = seconds(seen.before, seen.after)};
  for (const host::Device& device : seen.place.devices) {
    DeviceTraffic line{.device = &device};
    const Counter* after = find(seen.after, device.name);
    const Counter* quiet = find(seen.quiet, device.name);
    const Counter* before = find(seen.before, device.name);
    line.doubt = doubtOf(device, quiet, before, after);
    if (before != nullptr && line.doubt.empty()) {
      line.sent = flowOf(seen, *before, quiet, after, &Counter::sent);
      line.received = flowOf(seen, *before, quiet, after, &Counter::received);
    }
    out.lines.push_back(line);
  }
  return out;
}

// PathShare::stage of copies at the source and at the sink.
constexpr std::uint32_t kLoad = 1, kStore = 3;

bool sameCounters(const HostPlace& a, const HostPlace& b) {
  return !a.boot_id.empty() && a.boot_id == b.boot_id && a.network == b.network;
}

// True if a member's clock and its /proc/stat disagree on when the kernel started. /proc/stat has
// whole seconds.
bool contradictsItself(const host::KernelStart& start) {
  constexpr double kTolerance = 1.5;
  return start.by_clock > 0 && start.by_stat > 0 &&
         std::abs(start.by_clock - start.by_stat) > kTolerance;
}

// True for a stage that copies between a member and its own storage.
bool isOfOwnStorage(std::uint32_t stage, Realm realm) {
  return (stage == kLoad || stage == kStore) && !staysInHost(realm) && realm != Realm::kUnknown;
}

// The bytes of such a stage. `source` and `sink` are the ranks of the whole transfer's ends.
PayloadStream streamOfStage(std::size_t share, const PathShare& told, std::uint32_t source,
                            std::uint32_t sink) {
  const bool loads = told.stage == kLoad;
  const std::uint32_t owner = loads ? source : sink;
  return {.share = share,
          .source = owner,
          .sink = owner,
          .teller = owner,
          .stored = true,
          .op = loads ? OpKind::kRead : OpKind::kWrite,
          .bytes = told.bytes};
}

}  // namespace

std::vector<std::string> devicesOf(std::span<const host::StorageStack> storage) {
  std::vector<std::string> out;
  for (const host::StorageStack& one : storage)
    for (const std::string& device : one.devices)
      if (!base::contains(out, device)) out.push_back(device);
  return out;
}

Realm realmOf(std::string_view backend, std::string_view way) {
  if (way.ends_with(kFaultsMark)) way.remove_suffix(kFaultsMark.size());
  const BackendFacts* facts = backendFacts(backend);
  return facts == nullptr ? Realm::kUnknown : facts->realm(way);
}

std::string copiedBy(std::span<const ProvenShare> path) {
  bool kernel = false, engine = false;
  for (const ProvenShare& share : path) {
    if (realmOf(share.backend, share.way) != Realm::kGpu) continue;
    kernel = kernel || share.by_kernel != 0;
    engine = engine || share.by_kernel < share.ops;
  }
  if (kernel && engine) return "kernel and copy engine";
  return kernel ? "kernel" : engine ? "copy engine" : "";
}

const DeviceTraffic* CounterDomain::lineNamed(std::string_view device) const {
  const auto at = std::find_if(lines.begin(), lines.end(),
                               [&](const DeviceTraffic& l) { return l.device->name == device; });
  return at == lines.end() ? nullptr : &*at;
}

const DeviceTraffic* CounterDomain::lineOfRail(std::string_view rail) const {
  rail = rail.substr(0, rail.find('#'));
  if (const DeviceTraffic* line = lineNamed(rail)) return line;
  for (const DeviceTraffic& line : lines) {
    const auto& addresses = line.device->addresses;
    if (std::find(addresses.begin(), addresses.end(), rail) != addresses.end()) return &line;
  }
  // A rail of UCX is named "mlx5_0:1", and one of libfabric "rdmap0s6-rdm". Both names begin with
  // the device's name.
  const DeviceTraffic* line = lineNamed(rail.substr(0, rail.find_first_of(":-")));
  return line != nullptr && line->device->kind == host::DeviceKind::kRdma ? line : nullptr;
}

bool CounterDomain::isPart(const DeviceTraffic& line) const {
  return std::any_of(lines.begin(), lines.end(), [&](const DeviceTraffic& whole) {
    const auto& parts = whole.device->lower;
    return std::find(parts.begin(), parts.end(), line.device->name) != parts.end();
  });
}

Account::Account(std::span<const Observation> seen) : seen_(seen) {
  addDomains();
  for (std::uint32_t rank = 0; rank < seen_.size(); ++rank) addClaims(rank);
}

void Account::addDomains() {
  std::vector<const Observation*> widest;  // each domain's observation of the longest time
  for (const Observation& one : seen_) {
    const auto known = std::find_if(widest.begin(), widest.end(), [&](const Observation* other) {
      return sameCounters(one.place, other->place);
    });
    domain_of_.push_back(static_cast<std::size_t>(known - widest.begin()));
    if (known == widest.end())
      widest.push_back(&one);
    else if (seconds(one.before, one.after) > seconds((*known)->before, (*known)->after))
      *known = &one;
  }
  for (const Observation* one : widest) domains_.push_back(domainFrom(*one));
  // Several domains may have one host name: one host can have several domains, and hosts may have
  // equal names. The lowest rank in the name tells such domains apart.
  for (std::uint32_t rank = static_cast<std::uint32_t>(seen_.size()); rank-- > 0;) {
    CounterDomain& domain = domains_[domain_of_[rank]];
    const bool doubled =
        std::count_if(domains_.begin(), domains_.end(), [&](const CounterDomain& other) {
          return other.place->hostname == domain.place->hostname;
        }) > 1;
    if (doubled) domain.name = fmt::format("{} (rank {})", domain.place->hostname, rank);
  }
}

bool Account::sameHost(std::uint32_t a, std::uint32_t b) const {
  const std::string& boot = seen_[a].place.boot_id;
  return a == b || (!boot.empty() && boot == seen_[b].place.boot_id);
}

std::string Account::doubtOfHosts(std::uint32_t a, std::uint32_t b) const {
  const HostPlace &one = seen_[a].place, &other = seen_[b].place;
  if (a == b || one.process == other.process) return {};
  for (const std::uint32_t rank : {a, b})
    if (const host::KernelStart& start = seen_[rank].place.kernel; contradictsItself(start))
      return fmt::format(
          "the clocks of rank {} place the start of its kernel {:.0f} s from where /proc/stat does",
          rank, std::abs(start.by_clock - start.by_stat));
  const double here = one.kernel.by_clock, there = other.kernel.by_clock;
  const bool together = host::startedTogether(here, there);
  if (!sameHost(a, b) && together)
    return fmt::format(
        "ranks {} and {} have different boot ids, but kernels that started in the same "
        "millisecond: perhaps one host",
        a, b);
  if (sameHost(a, b) && here > 0 && there > 0 && !together)
    return fmt::format(
        "ranks {} and {} have one boot id, but kernels that started {:.3g} s apart: perhaps two "
        "hosts",
        a, b, std::abs(here - there));
  return {};
}

bool Account::onNetwork(const PayloadStream& stream) const {
  const Realm realm = shares_[stream.share].realm;
  if (stream.stored) return false;
  return realm == Realm::kRdma || (realm == Realm::kSockets && !loops(stream));
}

std::vector<DeviceCounts> Account::devices() const {
  const auto bytes_of = [](const Flow& flow) {
    return flow.counted ? std::optional(flow.counted->bytes) : std::nullopt;
  };
  std::vector<DeviceCounts> out;
  for (const CounterDomain& domain : domains_)
    for (const DeviceTraffic& line : domain.lines) {
      DeviceCounts one{.host = domain.name,
                       .device = line.device->name,
                       .sent = bytes_of(line.sent),
                       .received = bytes_of(line.received),
                       .sent_by_others = line.sent.others,
                       .received_by_others = line.received.others};
      if (one.sent.value_or(0) != 0 || one.received.value_or(0) != 0) out.push_back(std::move(one));
    }
  return out;
}

std::size_t Account::shareOf(const PathShare& told) {
  for (std::size_t i = 0; i < shares_.size(); ++i) {
    const PathShare& known = shares_[i].told;
    if (std::tie(known.backend, known.way, known.rail, known.stage) ==
        std::tie(told.backend, told.way, told.rail, told.stage))
      return i;
  }
  shares_.push_back(
      {.told = {.backend = told.backend, .way = told.way, .rail = told.rail, .stage = told.stage},
       .realm = realmOf(told.backend, told.way)});
  return shares_.size() - 1;
}

const GpuPlace* Account::gpuOf(std::uint32_t rank, std::uint32_t device) const {
  const auto& gpus = seen_[rank].place.gpus;
  const auto at = std::ranges::find(gpus, device, &GpuPlace::device);
  return at == gpus.end() ? nullptr : &*at;
}

void Account::addClaims(std::uint32_t rank) {
  for (const Claim& claim : seen_[rank].claims) {
    if (claim.peer >= seen_.size()) continue;  // an unknown member
    // All bytes of a staged transfer pass each of its stages, so count the bytes of one stage.
    std::uint32_t counted = kStore;
    for (const PathShare& told : claim.path.shares)
      if (told.stage != 0) counted = std::min(counted, told.stage);
    for (const PathShare& told : claim.path.shares) {
      addShare(rank, claim, told);
      if (told.stage == 0 || told.stage == counted) payload_ += told.bytes;
    }
  }
}

void Account::addShare(std::uint32_t rank, const Claim& claim, const PathShare& told) {
  const std::size_t share = shareOf(told);
  PathShare& all = shares_[share].told;
  all.bytes += told.bytes;
  all.ops += told.ops;
  all.injected += told.injected;
  all.batches += told.batches;
  all.by_kernel += told.by_kernel;
  const bool writes = claim.op == OpKind::kWrite;
  const std::uint32_t source = writes ? rank : claim.peer, sink = writes ? claim.peer : rank;
  if (isOfOwnStorage(told.stage, shares_[share].realm)) {
    streams_.push_back(streamOfStage(share, told, source, sink));
    return;
  }
  const GpuPlace* const near = gpuOf(rank, claim.device);
  const GpuPlace* const far = claim.stored ? nullptr : gpuOf(claim.peer, claim.far_device);
  streams_.push_back({.share = share,
                      .source = told.stage == kStore ? sink : source,
                      .sink = told.stage == kLoad ? source : sink,
                      .teller = rank,
                      .stored = claim.stored,
                      .source_gpu = told.stage == kStore ? nullptr
                                    : writes             ? near
                                                         : far,
                      .sink_gpu = told.stage == kLoad ? nullptr
                                  : writes            ? far
                                                      : near,
                      .op = claim.op,
                      .bytes = told.bytes});
}

std::string amount(double bytes) {
  constexpr std::array kUnits{"B", "kB", "MB", "GB", "TB", "PB"};
  std::size_t unit = 0;
  while (bytes >= 999.5 && unit + 1 < kUnits.size()) {
    bytes /= 1000;
    ++unit;
  }
  return fmt::format("{:.{}f} {}", bytes,
                     unit == 0 || bytes >= 99.5 ? 0
                     : bytes >= 9.95            ? 1
                                                : 2,
                     kUnits[unit]);
}

}  // namespace viaduct::measure::proof
