// Chooses the libfabric provider and its devices, or decides not to open ofi. Threads: pure, apart
// from calls of libfabric.
#pragma once

#include <viaduct/settings.h>

#include <span>
#include <string>
#include <vector>

#include "backends/ofi/ofi_domain.h"
#include "move/fabric_backend.h"

namespace viaduct::ofi {

// kUnsupported: the user has not named ofi, and the host has no RDMA device.
Result<move::Fabric> choose(const Settings& settings);

// One entry of libfabric's list: a provider on a device.
struct Offer {
  std::string provider = {};  // "tcp;ofi_rxm"
  std::string device = {};    // name of the domain: "eth0", "mlx5_0", "rdmap0s31-rdm"
  std::string nic = {};       // "rdmap0s31"; empty: libfabric does not say
  std::string address = {};   // source address without a port; empty: no address
  bool ipv6 = false;
  bool usable = true;             // we can register memory as the provider requires
  const fi_info* info = nullptr;  // belongs to the list
};
// The offers of a list. Several entries with equal provider, device and address count once.
std::vector<Offer> offersIn(const fi_info* list);

// Finds the rails near memory, from the NICs of all opened rails. The backend uses this only if the
// user has named no rails.
move::NearRails nearRails(std::span<const Offer> opened, const host::Tree& tree = {});

bool isRdma(const std::string& provider);
// The provider to use. `wanted` is its name, or the part before ";"; empty chooses the best.
Result<std::string> providerFor(const std::string& wanted, std::span<const Offer> offers);
// The offer of the provider that `rail` names: a device, an interface or an address. An empty
// `rail` is the first offer. The error lists the devices, and proposes a similar name.
Result<Offer> deviceFor(const std::string& rail, const std::string& provider,
                        std::span<const Offer> offers);

// The reason why memory of GPUs is staged over a provider. `library`: the version of libfabric;
// `with_hmem`: its providers for memory of devices (FI_HMEM).
std::string whyGpuIsStaged(std::uint32_t library, const std::string& provider,
                           std::span<const std::string> with_hmem);

// The offers that become rails, and the devices that were left out.
struct RailOffers {
  std::vector<Offer> offers = {};
  std::vector<std::string> left_out = {};
};
// Chooses the rails. If the user has named none, these are the devices nearest to this process's
// CPUs over RDMA, and the first device over other networks.
Result<RailOffers> railsFor(std::span<const std::string> named, const std::string& provider,
                            std::span<const Offer> offers, const host::Tree& tree = {});

}  // namespace viaduct::ofi
