// Which provider of libfabric is used and over which devices, and whether any is. Threads: pure,
// but for asking libfabric.
#pragma once

#include <viaduct/settings.h>

#include <span>
#include <string>
#include <vector>

#include "backends/ofi/ofi_domain.h"
#include "move/fabric_backend.h"

namespace viaduct::ofi {

// kUnsupported: nobody has asked for ofi by name, and there is no RDMA device that would make it
// worth while.
Result<move::Fabric> choose(const Settings& settings);

// One way to send that libfabric offers.
struct Offer {
  std::string provider = {};  // "tcp;ofi_rxm"
  std::string device = {};    // its domain: "eth0", "mlx5_0", "rdmap0s31-rdm"
  std::string nic = {};       // "rdmap0s31"; empty: libfabric does not say
  std::string address = {};   // that it sends from, without a port; empty: it has none
  bool ipv6 = false;
  bool usable = true;             // we can register memory as it wants
  const fi_info* info = nullptr;  // the list's
};
// The first of those that are the same but for what they promise.
std::vector<Offer> offersIn(const fi_info* list);

// What is known of rails that nobody has named: of which NIC each is.
move::NearRails nearRails(std::span<const Offer> opened, const std::string& root = "/");

bool isRdma(const std::string& provider);
// Which provider to use: `wanted` is its name, or the name before its ";"; empty: the best.
Result<std::string> providerFor(const std::string& wanted, std::span<const Offer> offers);
// What of the provider's offers `rail` names: a device, an interface or an address. Empty: the
// first. The error says what there is, and what is nearly that.
Result<Offer> deviceFor(const std::string& rail, const std::string& provider,
                        std::span<const Offer> offers);

// What becomes a rail, and what could have and does not.
struct RailOffers {
  std::vector<Offer> offers = {};
  std::vector<std::string> left_out = {};
};
// Where nothing is named: over RDMA, every device that is as near as any to this process's CPUs;
// else the first. Files are read below `root`.
Result<RailOffers> railsFor(std::span<const std::string> named, const std::string& provider,
                            std::span<const Offer> offers, const std::string& root = "/");

}  // namespace viaduct::ofi
