#include "measure/proof/ceilings.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "measure/proof/memory_rate.h"
#include "measure/result/text.h"

namespace viaduct::measure::proof {
namespace {

using host::Device;
using host::DeviceKind;

// A device takes part if it carried more than this part of its domain's payload in one direction.
constexpr double kPart = 0.05;

// The payload that passed one domain in one direction, and the devices that carried it.
struct Load {
  double bytes = 0;
  std::set<const DeviceTraffic*> lines = {};
  bool any = false;  // a share named no device, so any device may have carried it
  Realm realm = Realm::kSockets;
};

// The payload that was copied from one memory to another.
struct GpuLoad {
  const GpuPlace* from = nullptr;  // null: host memory
  const GpuPlace* to = nullptr;
  double bytes = 0;
};

struct Capacity {
  double bytes_per_s = 0;
  bool slot = false;  // the device's slot is narrower than its link
};

class Limiter {
 public:
  Limiter(const Account& account, std::uint64_t working_set, std::span<const LinkRate> rates)
      : account_(account), working_set_(working_set), rates_(rates) {}

  Limits find() {
    for (std::size_t d = 0; d < account_.domains().size(); ++d) {
      for (const Direction way : {Direction::kSent, Direction::kReceived}) network(d, way);
      onHost(d);
      onGpus(d);
    }
    return std::move(out_);
  }

 private:
  void consider(Limit limit, double through) {
    limit.gb_per_s *= static_cast<double>(account_.payload()) / through;
    if (!out_.binding || limit.gb_per_s < out_.binding->gb_per_s) out_.binding = std::move(limit);
  }

  void network(std::size_t d, Direction way) {
    const CounterDomain& domain = account_.domains()[d];
    Load load = loadOf(d, way);
    if (load.bytes <= 0) return;
    if (load.any) addCarriers(domain, way, load);
    double total = 0;
    bool slot = false;
    std::vector<std::string> names;
    for (const DeviceTraffic* line : load.lines) {
      const Capacity one = capacityOf(*line->device);
      if (one.bytes_per_s <= 0) {
        out_.unknown =
            fmt::format("the rate of {} of {} is unknown", line->device->name, domain.name);
        return;
      }
      total += one.bytes_per_s;
      slot = slot || one.slot;
      names.push_back(line->device->name);
    }
    if (names.empty()) return;
    consider({.what = slot ? Binding::kSlot : Binding::kLink,
              .name = nameOf(domain, load, names, total, slot),
              .gb_per_s = total * 1e-9},
             load.bytes);
  }

  static std::string nameOf(const CounterDomain& domain, const Load& load,
                            const std::vector<std::string>& names, double total, bool slot) {
    const Device& first = *(*load.lines.begin())->device;
    if (slot)
      return fmt::format("PCIe slot{} of {} of {}{}", names.size() > 1 ? "s" : "",
                         fmt::join(names, "+"), domain.name,
                         names.size() == 1 ? ", " + first.pcie : "");
    return fmt::format("link{} {} of {}, {:.6g} Gbit/s", names.size() > 1 ? "s" : "",
                       fmt::join(names, "+"), domain.name, total * 8e-9);
  }

  Load loadOf(std::size_t d, Direction way) const {
    Load out;
    const CounterDomain& domain = account_.domains()[d];
    for (const PayloadStream& s : account_.streams()) {
      const std::uint32_t rank = way == Direction::kSent ? s.source : s.sink;
      if (!account_.onNetwork(s) || account_.domainOf(rank) != d) continue;
      const Share& share = account_.shares()[s.share];
      out.bytes += static_cast<double>(s.bytes);
      out.realm = share.realm;
      const DeviceTraffic* line = s.teller == rank ? domain.lineOfRail(share.told.rail) : nullptr;
      out.any = out.any || line == nullptr;
      if (line != nullptr) out.lines.insert(line);
    }
    if (out.bytes > 0) addAsked(d, way, out);
    return out;
  }

  // Adds the requested rails. They count for the ceiling even if they carried nothing.
  void addAsked(std::size_t d, Direction way, Load& load) const {
    const CounterDomain& domain = account_.domains()[d];
    for (std::uint32_t rank = 0; rank < account_.seen().size(); ++rank) {
      if (account_.domainOf(rank) != d || !tells(rank, way)) continue;
      for (const std::string& rail : account_.seen()[rank].place.rails)
        if (const DeviceTraffic* line = domain.lineOfRail(rail)) load.lines.insert(line);
    }
  }

  // True if this member's own transfers move bytes in that direction.
  bool tells(std::uint32_t rank, Direction way) const {
    return std::any_of(
        account_.streams().begin(), account_.streams().end(), [&](const PayloadStream& s) {
          return s.teller == rank && (way == Direction::kSent ? s.source : s.sink) == rank;
        });
  }

  // Adds the devices that carried more than kPart of the payload. If none did, and no share or
  // request names a device, adds all devices with a known rate.
  void addCarriers(const CounterDomain& domain, Direction way, Load& load) const {
    const auto candidate = [&](const DeviceTraffic& line) {
      const DeviceKind kind = line.device->kind;
      if (load.realm == Realm::kRdma) return kind == DeviceKind::kRdma;
      return (kind == DeviceKind::kEthernet || kind == DeviceKind::kVirtual) &&
             !domain.isPart(line);
    };
    bool carried = false;
    for (const DeviceTraffic& line : domain.lines)
      if (candidate(line) && line.in(way).ours() > load.bytes * kPart) {
        load.lines.insert(&line);
        carried = true;
      }
    if (carried || !load.lines.empty()) return;
    for (const DeviceTraffic& line : domain.lines)
      if (candidate(line) && capacityOf(*line.device).bytes_per_s > 0) load.lines.insert(&line);
  }

  Capacity capacityOf(const Device& device) const {
    const auto given = std::find_if(rates_.begin(), rates_.end(),
                                    [&](const LinkRate& r) { return r.device == device.name; });
    const auto link =
        static_cast<double>(given != rates_.end() ? given->bytes_per_s : device.link_bytes_per_s);
    const auto slot = static_cast<double>(device.pcie_bytes_per_s);
    if (link <= 0 || (slot > 0 && slot < link)) return {slot, slot > 0};
    return {link, false};
  }

  // Adds the ceilings of traffic inside one host. Shared memory copies each byte once. Loopback
  // copies it twice, into and out of the kernel.
  void onHost(std::size_t d) {
    const CounterDomain& domain = account_.domains()[d];
    double copied = 0, looped = 0;
    for (const PayloadStream& s : account_.streams()) {
      if (account_.domainOf(s.sink) != d) continue;
      const Realm realm = account_.shares()[s.share].realm;
      // The benchmark does not measure how fast a disk or an object store is.
      if (s.stored && realm != Realm::kMemory)
        out_.unknown = "the limit of the storage is not measured";
      if (realm == Realm::kMemory) copied += static_cast<double>(s.bytes);
      if (realm == Realm::kSockets && !s.stored && account_.loops(s))
        looped += static_cast<double>(s.bytes);
    }
    const MemoryRates* rates = memoryOf(domain);
    if (copied + looped <= 0) return;
    if (rates == nullptr) {
      out_.unknown = fmt::format("the memory copy rate of {} was not measured", domain.name);
      return;
    }
    const double rate = copyCeiling(rates->all_threads, working_set_);
    if (copied > 0)
      consider({.what = Binding::kMemory,
                .name = fmt::format("memory copy of {}, {}", domain.name,
                                    counted(rates->threads, "thread")),
                .gb_per_s = rate},
               copied);
    if (looped > 0)
      consider({.what = Binding::kLoopback,
                .name = fmt::format("loopback of {}: two copies in memory", domain.name),
                .gb_per_s = rate / 2},
               looped);
  }

  // Adds the ceilings of copies by GPUs, one for each pair of GPUs. Pairs copy at the same time.
  void onGpus(std::size_t d) {
    const CounterDomain& domain = account_.domains()[d];
    std::map<std::pair<std::string, std::string>, GpuLoad> loads;
    for (const PayloadStream& s : account_.streams()) {
      if (account_.shares()[s.share].realm != Realm::kGpu || account_.domainOf(s.sink) != d)
        continue;
      const auto id = [](const GpuPlace* gpu) { return gpu == nullptr ? "" : gpu->id; };
      GpuLoad& load = loads[{id(s.source_gpu), id(s.sink_gpu)}];
      load.from = s.source_gpu;
      load.to = s.sink_gpu;
      load.bytes += static_cast<double>(s.bytes);
    }
    for (const auto& [ids, load] : loads) considerGpus(domain, load, working_set_ / loads.size());
  }

  void considerGpus(const CounterDomain& domain, const GpuLoad& load, std::uint64_t working_set) {
    if (load.from == nullptr && load.to == nullptr) {
      out_.unknown = "the GPU that copied is unknown";
      return;
    }
    const std::string name = nameOf(domain, load);
    const GpuRate* const rate = rateOf(domain, load);
    if (rate == nullptr || rate->rates.empty()) {
      out_.unknown = fmt::format("the rate of the {} was not measured: {}", name,
                                 rate == nullptr ? "no process has both GPUs" : rate->why_not);
      return;
    }
    consider(
        {.what = Binding::kGpu, .name = name, .gb_per_s = copyCeiling(rate->rates, working_set)},
        load.bytes);
  }

  static std::string nameOf(const CounterDomain& domain, const GpuLoad& load) {
    if (load.from == nullptr)
      return fmt::format("copy from pinned host memory to {} of {}", load.to->name, domain.name);
    if (load.to == nullptr)
      return fmt::format("copy from {} to pinned host memory of {}", load.from->name, domain.name);
    if (load.from->id == load.to->id)
      return fmt::format("copy within {} of {}", load.from->name, domain.name);
    return fmt::format("copy from {} to {} of {}", load.from->name, load.to->name, domain.name);
  }

  // Returns the measured rate of this pair of GPUs, by any member of the host. Null: not measured.
  const GpuRate* rateOf(const CounterDomain& domain, const GpuLoad& load) const {
    const auto is_id = [](const std::string& id, const GpuPlace* gpu) {
      return id == (gpu == nullptr ? std::string_view() : std::string_view(gpu->id));
    };
    for (const Observation& seen : account_.seen()) {
      if (!onHostOf(domain, seen.place)) continue;
      for (const GpuRate& rate : seen.place.gpu_rates)
        if (is_id(rate.from, load.from) && is_id(rate.to, load.to)) return &rate;
    }
    return nullptr;
  }

  static bool onHostOf(const CounterDomain& domain, const HostPlace& place) {
    return &place == domain.place ||
           (!place.boot_id.empty() && place.boot_id == domain.place->boot_id);
  }

  // Returns the rates of the host's one member that measured them. Null: no member did.
  const MemoryRates* memoryOf(const CounterDomain& domain) const {
    for (const Observation& seen : account_.seen()) {
      const HostPlace& place = seen.place;
      if (onHostOf(domain, place) && place.memory.threads != 0) return &place.memory;
    }
    return nullptr;
  }

  const Account& account_;
  const std::uint64_t working_set_;
  const std::span<const LinkRate> rates_;
  Limits out_;
};

}  // namespace

Limits limitsOf(const Account& account, std::uint64_t working_set,
                std::span<const LinkRate> link_rates) {
  return Limiter(account, working_set, link_rates).find();
}

double toleranceOf(Binding what) { return isMeasured(what) ? 1.0 : 0.05; }

bool isMeasured(Binding what) {
  return what == Binding::kMemory || what == Binding::kLoopback || what == Binding::kGpu;
}

}  // namespace viaduct::measure::proof
