// Brings together the bytes that transfers claim and the bytes that devices counted. Proofs and
// ceilings use an Account. Threads: plain values, over observations that must live longer.
#pragma once

#include <viaduct/backend.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "measure/proof/observation.h"
#include "measure/result/row.h"

namespace viaduct::measure::proof {

// Returns the lowest block devices under `storage`, each once.
std::vector<std::string> devicesOf(std::span<const host::StorageStack> storage);

// Returns the kind of counters that see a share's bytes, as its backend declares it.
Realm realmOf(std::string_view backend, std::string_view way);

// True if no device carries the bytes.
constexpr bool staysInHost(Realm realm) { return realm == Realm::kMemory || realm == Realm::kGpu; }

// Returns which parts of GPUs copied (kernel, copy engine), in the words of Row::copied_by.
std::string copiedBy(std::span<const ProvenShare> path);

enum class Direction : std::uint8_t { kSent, kReceived };

// The bytes that a device carried in one direction while the row ran.
struct Flow {
  std::optional<host::Delta> counted = {};  // nothing: the counter is not readable
  double others = 0;  // expected part of these bytes that is other programs' traffic
  double ours() const { return counted ? static_cast<double>(counted->bytes) - others : 0; }
};

struct DeviceTraffic {
  const host::Device* device = nullptr;
  Flow sent = {}, received = {};
  // Why the counter is not believed, for people. Empty: believed. The flows of a doubted counter
  // have no count.
  std::string doubt = {};
  const Flow& in(Direction way) const { return way == Direction::kSent ? sent : received; }
  bool network() const { return device->kind != host::DeviceKind::kLoopback; }
};

// Members that see the same counters, because they share a host and a network namespace.
struct CounterDomain {
  std::string name = {};  // for people
  const HostPlace* place = nullptr;
  std::vector<DeviceTraffic> lines = {};
  double seconds = 0;  // duration of the row, as seen in this domain

  const DeviceTraffic* lineNamed(std::string_view device) const;
  // Returns the device that a rail's name means: "eth0", "10.0.0.1", "eth0#1", "mlx5_0:1". Null:
  // the name fits no known device.
  const DeviceTraffic* lineOfRail(std::string_view rail) const;
  // True if the device is part of a bond or VLAN. The counters of the bond or VLAN include the
  // part's bytes.
  bool isPart(const DeviceTraffic& line) const;
};

// One entry of a row's path: all bytes with one backend, way, rail name and stage.
struct Share {
  PathShare told = {};
  Realm realm = Realm::kUnknown;
};

// The payload of one share from one member to another. For the load or the store stage of a staged
// transfer, source and sink are the same member.
struct PayloadStream {
  std::size_t share = 0;
  std::uint32_t source = 0, sink = 0, teller = 0;  // ranks; the teller is the initiator
  bool stored = false;  // between the teller and its storage: teller is source and sink
  // The GPUs between whose memory the share copied. Null: host memory or storage.
  const GpuPlace* source_gpu = nullptr;
  const GpuPlace* sink_gpu = nullptr;
  OpKind op = OpKind::kWrite;  // the op that the teller posts
  std::uint64_t bytes = 0;
};

class Account {
 public:
  explicit Account(std::span<const Observation> seen);
  std::span<const Observation> seen() const { return seen_; }
  const std::vector<Share>& shares() const { return shares_; }
  const std::vector<PayloadStream>& streams() const { return streams_; }
  const std::vector<CounterDomain>& domains() const { return domains_; }
  std::size_t domainOf(std::uint32_t rank) const { return domain_of_[rank]; }
  bool sameHost(std::uint32_t a, std::uint32_t b) const;
  // Why it is in doubt whether two members are on one host, for people. Empty: no doubt, because
  // the boot ids and start times of their kernels agree.
  std::string doubtOfHosts(std::uint32_t a, std::uint32_t b) const;
  // True for a stream within one domain. If sockets carry it, its bytes pass the loopback device.
  bool loops(const PayloadStream& stream) const {
    return domain_of_[stream.source] == domain_of_[stream.sink];
  }
  // True if the stream goes between members, and its bytes must pass a device that leads to other
  // hosts.
  bool onNetwork(const PayloadStream& stream) const;
  std::uint64_t payload() const { return payload_; }
  // Returns what the devices counted. Silent devices are left out.
  std::vector<DeviceCounts> devices() const;

 private:
  void addDomains();
  void addClaims(std::uint32_t rank);
  std::size_t shareOf(const PathShare& told);
  const GpuPlace* gpuOf(std::uint32_t rank, std::uint32_t device) const;
  void addShare(std::uint32_t rank, const Claim& claim, const PathShare& told);

  std::span<const Observation> seen_;
  std::vector<CounterDomain> domains_;
  std::vector<std::size_t> domain_of_;
  std::vector<Share> shares_;
  std::vector<PayloadStream> streams_;
  std::uint64_t payload_ = 0;
};

// Returns a text such as "12.3 GB" or "64 B", with decimal units like rates.
std::string amount(double bytes);

}  // namespace viaduct::measure::proof
