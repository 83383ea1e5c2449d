#include "measure/proof/prove.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "base/lists.h"

namespace viaduct::measure::proof {
namespace {

// Devices prove a payload if they counted at least this part of its bytes. It is below 1 because
// counters and clock are not read at the same moment.
constexpr double kMost = 0.98;
// A device that counted this part of the payload, or more, may have carried the payload.
constexpr double kQuiet = 0.5;
// A rail should take part if its share of a transfer has at least this many bytes.
constexpr std::uint64_t kWorthARail = std::uint64_t{64} << 10U;
// A rail is silent if it carried less than this part of its fair share.
constexpr double kSilent = 0.02;
constexpr std::size_t kTextParts = 4;

// The bytes that the devices of one domain had to carry in one direction.
struct Need {
  std::size_t domain = 0;
  Direction way = Direction::kSent;
  Realm realm = Realm::kSockets;
  bool loop = false;                    // the bytes pass the loopback device
  bool outside = false;                 // to or from a server, which may be on this host
  const DeviceTraffic* line = nullptr;  // the one possible device; nullptr: any of the realm
  friend bool operator<(const Need& a, const Need& b) {
    const auto key = [](const Need& n) {
      return std::tuple(n.domain, n.way, n.realm, n.loop, n.outside,
                        n.line == nullptr ? "" : n.line->device->name);
    };
    return key(a) < key(b);
  }
};

struct Finding {
  Proven proven = Proven::kUnproven;
  std::optional<CountedPayload> counted = {};
  std::vector<const DeviceTraffic*> carriers = {};
  std::string text = {};
};

bool serves(const CounterDomain& domain, const DeviceTraffic& line, Realm realm, bool loop,
            bool outside = false) {
  using host::DeviceKind;
  if (outside && line.device->kind == DeviceKind::kLoopback) return true;
  const DeviceKind kind = line.device->kind;
  if (loop) return kind == DeviceKind::kLoopback;
  if (realm == Realm::kRdma) return kind == DeviceKind::kRdma;
  return (kind == DeviceKind::kEthernet || kind == DeviceKind::kVirtual) && !domain.isPart(line);
}

// The device that serves the rail of a share. Null: no such device is known.
const DeviceTraffic* servingLine(const CounterDomain& domain, const Share& share) {
  const DeviceTraffic* line = domain.lineOfRail(share.told.rail);
  return line != nullptr && serves(domain, *line, share.realm, false) ? line : nullptr;
}

using Kinds = bool (*)(host::DeviceKind kind);
bool isRdma(host::DeviceKind kind) { return kind == host::DeviceKind::kRdma; }
bool isLoopback(host::DeviceKind kind) { return kind == host::DeviceKind::kLoopback; }
bool isEthernet(host::DeviceKind kind) { return !isRdma(kind) && !isLoopback(kind); }

class Prover {
 public:
  Prover(const Account& account, std::uint64_t transfer_bytes)
      : account_(account), transfer_bytes_(transfer_bytes), by_share_(account.shares().size()) {}

  Proof prove() {
    for (const PayloadStream& stream : account_.streams()) addNeeds(stream);
    for (const auto& [need, bytes] : needs_) {
      const Finding& found = findings_[need] = check(need, bytes);
      if (found.counted) out_.counted.push_back(*found.counted);
    }
    for (std::size_t i = 0; i < account_.shares().size(); ++i) judgeShare(i);
    out_.text = textOf();
    findSilent();
    return std::move(out_);
  }

 private:
  struct OfShare {
    std::set<Need> told;   // needs at the end that claims the share
    std::set<Need> other;  // needs at the other end
    bool apart = false;    // source and sink are on two hosts
    std::string doubt;     // why the ends may not be what they claim to be
    std::vector<std::size_t> domains;
  };

  void need(const Need& what, std::uint64_t bytes, std::set<Need>& into) {
    needs_[what] += bytes;
    into.insert(what);
  }

  void addNeeds(const PayloadStream& stream) {
    OfShare& mine = by_share_[stream.share];
    const Share& share = account_.shares()[stream.share];
    const std::size_t from = account_.domainOf(stream.source);
    const std::size_t to = account_.domainOf(stream.sink);
    if (mine.doubt.empty()) mine.doubt = doubtOf(stream);
    if (staysInHost(share.realm) || share.realm == Realm::kUnknown) {
      mine.apart = mine.apart || !account_.sameHost(stream.source, stream.sink);
      mine.domains.insert(mine.domains.end(), {from, to});
      return;
    }
    if (share.realm == Realm::kDisk) return;
    const bool writes = stream.op == OpKind::kWrite;
    if (stream.stored)
      return need({.domain = from,
                   .way = writes ? Direction::kSent : Direction::kReceived,
                   .realm = share.realm,
                   .outside = true},
                  stream.bytes, mine.told);
    if (share.realm == Realm::kSockets && account_.loops(stream))
      return need({.domain = from, .realm = share.realm, .loop = true}, stream.bytes, mine.told);
    const std::size_t here = writes ? from : to;
    const Direction way = writes ? Direction::kSent : Direction::kReceived;
    const Direction back = writes ? Direction::kReceived : Direction::kSent;
    const DeviceTraffic* line = servingLine(account_.domains()[here], share);
    need({.domain = here, .way = way, .realm = share.realm, .line = line}, stream.bytes, mine.told);
    need({.domain = writes ? to : from, .way = back, .realm = share.realm}, stream.bytes,
         mine.other);
  }

  std::string doubtOf(const PayloadStream& stream) const {
    for (const GpuPlace* gpu : {stream.source_gpu, stream.sink_gpu})
      if (gpu != nullptr && !gpu->doubt.empty())
        return fmt::format("{} is known to its driver only: {}", gpu->name, gpu->doubt);
    return account_.doubtOfHosts(stream.source, stream.sink);
  }

  // Returns the bytes of needs that name a device and otherwise equal `any`.
  double taken(const Need& any) const {
    double out = 0;
    for (const auto& [need, bytes] : needs_)
      if (need.line != nullptr && need.domain == any.domain && need.way == any.way &&
          need.realm == any.realm && need.loop == any.loop && need.outside == any.outside)
        out += static_cast<double>(bytes);
    return out;
  }

  std::vector<const DeviceTraffic*> linesFor(const Need& need) const {
    const CounterDomain& domain = account_.domains()[need.domain];
    std::vector<const DeviceTraffic*> out;
    for (const DeviceTraffic& line : domain.lines)
      if (need.line == nullptr ? serves(domain, line, need.realm, need.loop, need.outside)
                               : &line == need.line)
        out.push_back(&line);
    return out;
  }

  struct Sum {
    double payload = 0, all = 0, others = 0;
    bool readable = true, wrapped = false;
    std::string doubt = {};
  };

  Finding check(const Need& need, std::uint64_t bytes) const {
    const CounterDomain& domain = account_.domains()[need.domain];
    const std::vector<const DeviceTraffic*> lines = linesFor(need);
    if (lines.empty() && domain.lines.empty())
      return {.text = fmt::format("the counters of {} cannot be read", domain.name)};
    if (lines.empty())
      return {.proven = Proven::kNo,
              .text = fmt::format("{} has no device for this path", domain.name)};
    Finding out;
    Sum sum{.payload = static_cast<double>(bytes) + (need.line == nullptr ? taken(need) : 0)};
    for (const DeviceTraffic* line : lines) {
      const Flow& flow = line->in(need.way);
      sum.readable = sum.readable && flow.counted.has_value();
      if (sum.doubt.empty()) sum.doubt = doubtOf(domain, *line);
      if (!flow.counted) continue;
      sum.wrapped = sum.wrapped || flow.counted->wrapped;
      sum.all += static_cast<double>(flow.counted->bytes);
      sum.others += std::max(flow.others, 0.0);
      if (flow.ours() > sum.payload * 0.01) out.carriers.push_back(line);
    }
    out.counted = CountedPayload{.host = domain.name,
                                 .devices = namesOf(out, need),
                                 .sent = need.way == Direction::kSent,
                                 .counted = sum.all,
                                 .others = sum.others,
                                 .payload = sum.payload};
    out.text = countedText(*out.counted);
    decide(out, sum, domain.seconds);
    return out;
  }

  // Returns why the device's counter is not believed. Empty: it is believed, or cannot be read.
  static std::string doubtOf(const CounterDomain& domain, const DeviceTraffic& line) {
    if (line.doubt.empty()) return {};
    return fmt::format("{} of {} {}", line.device->name, domain.name, line.doubt);
  }

  static std::string doubtOf(const CounterDomain& domain) {
    for (const DeviceTraffic& line : domain.lines)
      if (!line.doubt.empty()) return doubtOf(domain, line);
    return {};
  }

  static std::string namesOf(const std::vector<const DeviceTraffic*>& lines) {
    std::vector<std::string> names;
    names.reserve(lines.size());
    for (const DeviceTraffic* line : lines) names.push_back(line->device->name);
    return fmt::format("{}", fmt::join(names, "+"));
  }

  static std::string namesOf(const Finding& found, const Need& need) {
    if (!found.carriers.empty()) return namesOf(found.carriers);
    if (need.line != nullptr) return need.line->device->name;
    return need.loop ? "lo" : "no device";
  }

  static void decide(Finding& out, const Sum& sum, double seconds) {
    if (isCarried(*out.counted)) {
      out.proven = Proven::kYes;
      if (sum.others > sum.payload * 0.01)
        out.text += fmt::format(" (besides {}/s of other traffic)",
                                amount(sum.others / std::max(seconds, 1e-9)));
    } else if (sum.wrapped) {
      out.text += ", and a 32-bit counter has wrapped";
    } else if (!sum.doubt.empty()) {
      out.text += ", and " + sum.doubt;
    } else if (!sum.readable) {
      out.text += ", and some counters cannot be read";
    } else if (sum.all >= sum.payload * kMost) {
      out.text += fmt::format(", of which {} may be other traffic", amount(sum.others));
    } else {
      out.proven = Proven::kNo;
    }
  }

  void judgeShare(std::size_t index) {
    const Share& share = account_.shares()[index];
    const OfShare& mine = by_share_[index];
    ProvenShare entry{.backend = share.told.backend,
                      .way = share.told.way,
                      .device = share.told.rail,
                      .bytes = share.told.bytes,
                      .ops = share.told.ops,
                      .injected = share.told.injected,
                      .batches = share.told.batches,
                      .stage = share.told.stage,
                      .by_kernel = share.told.by_kernel};
    if (staysInHost(share.realm))
      entry.proven = share.told.stage == 0 ? silence(share, mine) : quietBesides(share, mine);
    else if (share.realm == Realm::kDisk)
      proveStored(index, entry);
    else if (share.realm == Realm::kUnknown)
      note(fmt::format("viaduct does not know whether {}/{} uses a network", share.told.backend,
                       share.told.way));
    else
      proveNeeds(mine, share, entry);
    if (!mine.doubt.empty()) {
      noteFirst(mine.doubt);
      if (entry.proven == Proven::kYes) entry.proven = Proven::kUnproven;
    }
    if (share.told.way.ends_with(kFaultsMark)) {
      noteFirst("VIADUCT_FAULTS injected faults");
      entry.proven = Proven::kUnproven;
    }
    out_.path.push_back(std::move(entry));
  }

  // Proves a copy in memory. Its bytes pass no network device, so no device may have counted them.
  Proven silence(const Share& share, const OfShare& mine) {
    if (mine.apart) {
      detour(Detour::kOtherInterface, "memory cannot carry bytes between two hosts");
      return Proven::kNo;
    }
    for (const std::size_t d : mine.domains) {
      const CounterDomain& domain = account_.domains()[d];
      if (domain.lines.empty()) {
        note(fmt::format("the counters of {} cannot be read", domain.name));
        return Proven::kUnproven;
      }
      for (const DeviceTraffic& line : domain.lines) {
        const auto payload = static_cast<double>(share.told.bytes);
        if (line.sent.counted && isQuiet(static_cast<double>(line.sent.counted->bytes), payload))
          continue;
        note(line.doubt.empty() ? fmt::format("{} of {} was too busy to rule out a network path",
                                              line.device->name, domain.name)
                                : doubtOf(domain, line));
        return Proven::kUnproven;
      }
    }
    note(fmt::format("memory: no device of {} carried {}",
                     account_.domains()[mine.domains.front()].name,
                     amount(static_cast<double>(share.told.bytes))));
    return Proven::kYes;
  }

  // Proves a stage in memory. Its bytes pass no network device, so the devices may only have
  // carried the other stages.
  Proven quietBesides(const Share& share, const OfShare& mine) {
    const auto payload = static_cast<double>(share.told.bytes);
    for (const std::size_t d : mine.domains)
      if (std::string doubt = doubtOf(account_.domains()[d]); !doubt.empty()) {
        note(std::move(doubt));
        return Proven::kUnproven;
      }
    for (const std::size_t d : mine.domains)
      for (const Direction way : {Direction::kSent, Direction::kReceived})
        if (!isQuiet(carriedBy(d, way) - neededOf(d, way), payload)) {
          note(fmt::format("devices of {} carried more than the stage between the members",
                           account_.domains()[d].name));
          return Proven::kUnproven;
        }
    note(fmt::format("memory: no device of {} carried the {} of stage {}",
                     account_.domains()[mine.domains.front()].name, amount(payload),
                     share.told.stage));
    return Proven::kYes;
  }

  double carriedBy(std::size_t d, Direction way) const {
    const CounterDomain& domain = account_.domains()[d];
    double out = 0;
    for (const DeviceTraffic& line : domain.lines)
      if (!domain.isPart(line)) out += std::max(line.in(way).ours(), 0.0);
    return out;
  }

  // Returns the bytes that devices of a domain had to carry. Loopback sends what it receives.
  double neededOf(std::size_t d, Direction way) const {
    double out = 0;
    for (const auto& [need, bytes] : needs_)
      if (need.domain == d && (need.way == way || need.loop)) out += static_cast<double>(bytes);
    return out;
  }

  // The payload of one member's reads or writes of files without the page cache.
  struct Stored {
    std::uint32_t rank = 0;
    OpKind op = OpKind::kWrite;
    double bytes = 0;   // of all shares
    bool mine = false;  // some bytes are of the share that is being proven
  };
  std::vector<Stored> storedWith(std::size_t index) const {
    std::vector<Stored> out;
    for (const PayloadStream& s : account_.streams()) {
      if (account_.shares()[s.share].realm != Realm::kDisk) continue;
      Stored* known = base::firstOf(
          out, [&](const Stored& one) { return one.rank == s.teller && one.op == s.op; });
      if (known == nullptr) known = &out.emplace_back(Stored{.rank = s.teller, .op = s.op});
      known->bytes += static_cast<double>(s.bytes);
      known->mine = known->mine || s.share == index;
    }
    return out;
  }

  // Proves files by two counts of the kernel: the bytes of each process at block devices, and of
  // each device. The lowest device, such as the disk under a loop device, shows if memory answered.
  void proveStored(std::size_t index, ProvenShare& entry) {
    const std::vector<Stored> all = storedWith(index);
    std::vector<std::string> stacks;
    bool proven = true;
    for (const Stored& one : all) {
      if (!one.mine) continue;
      for (const host::StorageStack& stack : account_.seen()[one.rank].place.storage)
        if (std::string text = stack.text(); !base::contains(stacks, text))
          stacks.push_back(std::move(text));
      const bool of_process = ofProcess(one), of_devices = ofDevices(one, all);
      proven = proven && of_process && of_devices;
    }
    if (proven) entry.proven = Proven::kYes;
    if (!stacks.empty()) entry.device = fmt::format("{}", fmt::join(stacks, " and "));
  }

  static double bytesOf(const host::DiskBytes& from, const host::DiskBytes& to, OpKind op) {
    return static_cast<double>(op == OpKind::kWrite ? to.written - from.written
                                                    : to.read - from.read);
  }
  static const char* pastOf(OpKind op) { return op == OpKind::kWrite ? "wrote" : "read"; }

  // True if the process's own count at block devices is at least the payload.
  bool ofProcess(const Stored& one) {
    const Observation& seen = account_.seen()[one.rank];
    if (!seen.before.disk || !seen.after.disk) {
      note("the kernel does not count this process's bytes at block devices");
      return false;
    }
    const double counted = bytesOf(*seen.before.disk, *seen.after.disk, one.op);
    note(fmt::format("block devices {} {} for {} of payload of rank {}", pastOf(one.op),
                     amount(counted), amount(one.bytes), one.rank));
    return counted >= one.bytes * kMost;
  }

  // True if the lowest devices carried the payload of all members that use them.
  bool ofDevices(const Stored& one, const std::vector<Stored>& all) {
    const Observation& seen = account_.seen()[one.rank];
    const std::vector<std::string> devices = devicesOf(seen.place.storage);
    double payload = 0, counted = 0;
    for (const Stored& other : all)
      if (other.op == one.op && account_.sameHost(other.rank, one.rank) &&
          devicesOf(account_.seen()[other.rank].place.storage) == devices)
        payload += other.bytes;
    for (const host::DiskCount& before : seen.before.devices)
      if (const auto* after =
              base::firstWith(seen.after.devices, &host::DiskCount::device, before.device))
        counted += bytesOf(before.bytes, after->bytes, one.op);
    if (!devices.empty() && counted >= payload * kMost) return true;
    note(whyNot(one, devices, counted, payload));
    return false;
  }

  std::string whyNot(const Stored& one, const std::vector<std::string>& devices, double counted,
                     double payload) const {
    const auto& storage = account_.seen()[one.rank].place.storage;
    if (const auto* memory = base::firstWith(storage, &host::StorageStack::in_memory, true))
      return fmt::format("the file of rank {} is in memory ({})", one.rank, memory->text());
    if (devices.empty())
      return fmt::format("no block device is known under the files of rank {}", one.rank);
    return fmt::format("{} {} {} for {} of payload: memory above it answered",
                       fmt::join(devices, "+"), pastOf(one.op), amount(counted), amount(payload));
  }

  void proveNeeds(const OfShare& mine, const Share& share, ProvenShare& entry) {
    bool all = true;
    std::vector<std::string> devices;
    for (const Need& need : mine.told) {
      const Finding& found = findings_.at(need);
      all = all && found.proven == Proven::kYes;
      if (found.proven == Proven::kNo) entry.proven = Proven::kNo;
      for (const DeviceTraffic* line : found.carriers) devices.push_back(line->device->name);
      if (found.proven == Proven::kNo) explain(need, share);
    }
    // The other end's counters may lag, so low counts there make a share unproven, not disproven.
    for (const Need& need : mine.other) all = all && findings_.at(need).proven == Proven::kYes;
    if (all && !mine.told.empty()) entry.proven = Proven::kYes;
    std::sort(devices.begin(), devices.end());
    devices.erase(std::unique(devices.begin(), devices.end()), devices.end());
    if (entry.proven != Proven::kNo && !devices.empty())
      entry.device = fmt::format("{}", fmt::join(devices, "+"));
  }

  // Returns the bytes of a need that its own devices did not carry.
  double missingOf(const Need& need) const {
    double carried = 0;
    for (const DeviceTraffic* line : linesFor(need))
      carried += std::max(line->in(need.way).ours(), 0.0);
    return static_cast<double>(needs_.at(need)) - carried;
  }

  // Returns the devices of the given kinds whose extra bytes make up `missing`, the most first.
  // Empty if all extra bytes of these kinds are fewer.
  std::vector<const DeviceTraffic*> carriersOf(double missing, const Need& need,
                                               Kinds kinds) const {
    const CounterDomain& domain = account_.domains()[need.domain];
    std::vector<std::pair<double, const DeviceTraffic*>> found;
    for (const DeviceTraffic& line : domain.lines) {
      const double more = line.in(need.way).ours() - neededOf(line, need);
      if (&line != need.line && !domain.isPart(line) && kinds(line.device->kind) && more > 0)
        found.emplace_back(more, &line);
    }
    std::sort(found.begin(), found.end(), std::greater<>());
    std::vector<const DeviceTraffic*> out;
    for (const auto& [more, line] : found) {
      if (missing <= 0) break;
      out.push_back(line);
      missing -= more / kMost;
    }
    return missing <= 0 ? out : std::vector<const DeviceTraffic*>();
  }

  // Finds the devices that carried the missing bytes of `need`.
  void explain(const Need& need, const Share& share) {
    const std::string& host = account_.domains()[need.domain].name;
    const double missing = missingOf(need);
    const std::string bytes = amount(missing);
    const std::string asked = need.line != nullptr ? need.line->device->name : "the network";
    if (const auto other = carriersOf(missing, need, isRdma); !other.empty())
      return detour(Detour::kOtherInterface, fmt::format("{} went over {} of {}, not over {}",
                                                         bytes, namesOf(other), host, asked));
    if (const auto other = carriersOf(missing, need, isEthernet); !other.empty()) {
      if (need.realm == Realm::kRdma)
        return detour(Detour::kTcp, fmt::format("{} went over {} of {}, an Ethernet device: TCP",
                                                bytes, namesOf(other), host));
      return detour(Detour::kOtherInterface, fmt::format("{} went over {} of {}, not over {}",
                                                         bytes, namesOf(other), host, asked));
    }
    if (!carriersOf(missing, need, isLoopback).empty())
      return detour(Detour::kLoopback,
                    fmt::format("{} went over loopback of {}, not over {}", bytes, host, asked));
    if (const std::string doubt = doubtOf(account_.domains()[need.domain]); !doubt.empty())
      return detour(Detour::kOtherInterface,
                    fmt::format("{} did not go over {} of {}, and {}", bytes, asked, host, doubt));
    detour(Detour::kMemory,
           fmt::format("no device of {} carried the {} that {}/{} reported: a memory copy", host,
                       bytes, share.told.backend, share.told.way));
  }

  double neededOf(const DeviceTraffic& line, const Need& like) const {
    double out = 0;
    for (const auto& [need, bytes] : needs_)
      if (need.line == &line && need.way == like.way) out += static_cast<double>(bytes);
    return out;
  }

  void detour(Detour kind, std::string where) {
    if (out_.detour >= kind) return;
    out_.detour = kind;
    out_.where = std::move(where);
  }

  void findSilent() {
    for (std::uint32_t rank = 0; rank < account_.seen().size(); ++rank)
      for (const Direction way : {Direction::kSent, Direction::kReceived}) findSilentOf(rank, way);
  }

  // Returns the payload that a member's own transfers moved over a network. If `line` is set,
  // counts only the bytes that their paths assign to that rail.
  double ownPayload(std::uint32_t rank, Direction way, const DeviceTraffic* line = nullptr) const {
    const CounterDomain& domain = account_.domains()[account_.domainOf(rank)];
    double out = 0;
    for (const PayloadStream& s : account_.streams()) {
      const std::string& rail = account_.shares()[s.share].told.rail;
      if (account_.onNetwork(s) && s.teller == rank &&
          (way == Direction::kSent ? s.source : s.sink) == rank &&
          (line == nullptr || domain.lineOfRail(rail) == line))
        out += static_cast<double>(s.bytes);
    }
    return out;
  }

  std::vector<const DeviceTraffic*> askedOf(std::uint32_t rank) const {
    const CounterDomain& domain = account_.domains()[account_.domainOf(rank)];
    std::vector<const DeviceTraffic*> out;
    for (const std::string& rail : account_.seen()[rank].place.rails) {
      const DeviceTraffic* line = domain.lineOfRail(rail);
      if (line != nullptr && std::find(out.begin(), out.end(), line) == out.end())
        out.push_back(line);
    }
    return out;
  }

  // Finds the rails of a member that carried almost nothing although the payload was large enough
  // for all rails. If the path names rails, a rail is silent by the path's count or the device's,
  // because the device's count may be other programs' traffic.
  void findSilentOf(std::uint32_t rank, Direction way) {
    const double bytes = ownPayload(rank, way);
    const std::vector<const DeviceTraffic*> asked = askedOf(rank);
    if (bytes <= 0 || asked.size() < 2 || transfer_bytes_ / asked.size() < kWorthARail) return;
    const std::string& host = account_.domains()[account_.domainOf(rank)].name;
    const double fair = bytes / static_cast<double>(asked.size());
    double told = 0;
    for (const DeviceTraffic* line : asked) told += ownPayload(rank, way, line);
    const bool names_rails = told >= bytes * kMost;
    for (const DeviceTraffic* line : asked) {
      const Flow& flow = line->in(way);
      const SilentRail rail{line->device->name, host};
      const bool untold = names_rails && ownPayload(rank, way, line) < fair * kSilent;
      const bool uncounted =
          flow.counted && static_cast<double>(flow.counted->bytes) < fair * kSilent;
      if (!untold && !uncounted) continue;
      if (std::find(out_.silent.begin(), out_.silent.end(), rail) == out_.silent.end())
        out_.silent.push_back(rail);
    }
  }

  void note(std::string text) { notes_.push_back(std::move(text)); }

  // Puts a note in front of all other notes, without a second copy.
  void noteFirst(const std::string& text) {
    std::erase(notes_, text);
    notes_.insert(notes_.begin(), text);
  }

  std::string textOf() const {
    std::vector<std::string> parts = notes_;
    // Unproven findings come first.
    for (const bool good : {false, true})
      for (const auto& [need, found] : findings_)
        if ((found.proven == Proven::kYes) == good) parts.push_back(found.text);
    if (!out_.where.empty()) parts.insert(parts.begin(), out_.where);
    if (parts.empty()) return "no bytes were moved";
    std::string out;
    for (std::size_t i = 0; i < std::min(parts.size(), kTextParts); ++i)
      out += (i == 0 ? "" : "; ") + parts[i];
    if (parts.size() > kTextParts) out += fmt::format("; and {} more", parts.size() - kTextParts);
    return out;
  }

  const Account& account_;
  const std::uint64_t transfer_bytes_;
  std::vector<OfShare> by_share_;
  std::map<Need, std::uint64_t> needs_;
  std::map<Need, Finding> findings_;
  std::vector<std::string> notes_;
  Proof out_;
};

}  // namespace

std::string countedText(const CountedPayload& c) {
  return fmt::format("{} of {} {} {} for {} of payload", c.devices, c.host,
                     c.sent ? "sent" : "received", amount(c.counted), amount(c.payload));
}

bool isCarried(const CountedPayload& c) { return c.counted - c.others >= c.payload * kMost; }

bool isQuiet(double counted, double payload) { return counted < payload * kQuiet; }

Proof prove(const Account& account, std::uint64_t transfer_bytes) {
  return Prover(account, transfer_bytes).prove();
}

}  // namespace viaduct::measure::proof
