// Who says to have moved what, beside what each device counted: the books that proof and ceilings
// are made from. Threads: plain values, over observations that outlive them.
#pragma once

#include <viaduct/backend.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "measure/proof/observation.h"

namespace viaduct::measure::proof {

// The counters that see a share's bytes, as its backend says.
Realm realmOf(std::string_view backend, std::string_view way);

enum class Direction : std::uint8_t { kSent, kReceived };

// What a device carried in one direction while the row ran.
struct Flow {
  std::optional<host::Delta> counted = {};  // nothing: not readable
  double others = 0;                        // bytes of it that others' traffic is expected to be
  double ours() const { return counted ? static_cast<double>(counted->bytes) - others : 0; }
};

struct DeviceTraffic {
  const host::Device* device = nullptr;
  Flow sent = {}, received = {};
  const Flow& in(Direction way) const { return way == Direction::kSent ? sent : received; }
  bool network() const { return device->kind != host::DeviceKind::kLoopback; }
};

// Members that see the same counters: of one host and one network namespace.
struct CounterDomain {
  std::string name = {};  // for people
  const HostPlace* place = nullptr;
  std::vector<DeviceTraffic> lines = {};
  double seconds = 0;  // of the row, as seen here

  const DeviceTraffic* lineNamed(std::string_view device) const;
  // The device that a rail's name means: "eth0", "10.0.0.1", "eth0#1", "mlx5_0:1"; none: any.
  const DeviceTraffic* lineOfRail(std::string_view rail) const;
  // A part of a bond or VLAN: its bytes are the whole's.
  bool isPart(const DeviceTraffic& line) const;
};

// One entry of a row's path: all that went by one rail's name.
struct Share {
  PathShare told = {};
  Realm realm = Realm::kUnknown;
};

// Payload of one share from one member to another.
struct PayloadStream {
  std::size_t share = 0;
  std::uint32_t source = 0, sink = 0, teller = 0;  // ranks; the teller is the initiator
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
  // Streams of sockets within a domain: their bytes are on its loopback device.
  bool loops(const PayloadStream& stream) const {
    return domain_of_[stream.source] == domain_of_[stream.sink];
  }
  // Streams whose bytes have to be on a device that leads somewhere.
  bool onNetwork(const PayloadStream& stream) const;
  std::uint64_t payload() const { return payload_; }

 private:
  void addDomains();
  void addClaims(std::uint32_t rank);
  std::size_t shareOf(const PathShare& told);

  std::span<const Observation> seen_;
  std::vector<CounterDomain> domains_;
  std::vector<std::size_t> domain_of_;
  std::vector<Share> shares_;
  std::vector<PayloadStream> streams_;
  std::uint64_t payload_ = 0;
};

// "12.3 GB", "64 B": decimal, as rates are.
std::string amount(double bytes);

}  // namespace viaduct::measure::proof
