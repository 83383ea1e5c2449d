#include "backends/ofi/choose.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>

#include <algorithm>
#include <array>
#include <functional>
#include <iterator>

#include "base/environment.h"
#include "base/log.h"
#include "base/nearest.h"
#include "base/sizes.h"
#include "core/setting_name.h"
#include "host/devices.h"
#include "host/nearness.h"
#include "host/rdma.h"
#include "move/auto_open.h"
#include "move/fabric_message.h"

namespace viaduct::ofi {
namespace {

using move::Fabric;
using move::namedIn;
using move::notNear;
using move::notOpenedUnasked;

// Measured over the provider tcp: docs/measured/packing.md.
constexpr std::uint64_t kPackBelow = std::uint64_t{16} << 10U;

// The best provider comes first. Other providers are used only if they are named.
constexpr std::array kPreference{"efa", "verbs;ofi_rxm", "cxi", "tcp", "tcp;ofi_rxm"};
// Providers for connected endpoints. `verbs` offers such endpoints too, but fails to open one.
constexpr std::array kConnected{"tcp", "net"};

// Providers that move data through the memory of one host.
constexpr std::array kMemory{"shm", "sm2"};

bool isOneOf(std::span<const char* const> words, std::string_view word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

std::string coreOf(const std::string& provider) { return provider.substr(0, provider.find(';')); }

std::string textOf(const void* address, std::uint32_t format) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  const int family = format == FI_SOCKADDR_IN ? AF_INET : AF_INET6;
  const void* const number =
      family == AF_INET
          ? static_cast<const void*>(&static_cast<const sockaddr_in*>(address)->sin_addr)
          : &static_cast<const sockaddr_in6*>(address)->sin6_addr;
  return ::inet_ntop(family, number, text.data(), text.size()) == nullptr ? "" : text.data();
}

Offer offerOf(const fi_info& info) {
  Offer out{.provider = info.fabric_attr->prov_name,
            .device = info.domain_attr->name,
            .ipv6 = info.addr_format == FI_SOCKADDR_IN6,
            .usable = refusedModes(info.domain_attr->mr_mode).empty(),
            .info = &info};
  if (info.nic != nullptr && info.nic->device_attr != nullptr &&
      info.nic->device_attr->name != nullptr)
    out.nic = info.nic->device_attr->name;
  if (info.src_addr != nullptr && (info.addr_format == FI_SOCKADDR_IN || out.ipv6))
    out.address = textOf(info.src_addr, info.addr_format);
  return out;
}

// The different values of a member, in the order of their first occurrence.
template <class Member>
std::vector<std::string> each(std::span<const Offer> offers, Member member) {
  std::vector<std::string> out;
  for (const Offer& one : offers)
    if (const std::string& word = std::invoke(member, one);
        !word.empty() && std::find(out.begin(), out.end(), word) == out.end())
      out.push_back(word);
  return out;
}

Error notThere(const std::string& what, const std::vector<std::string>& there,
               const std::string& setting) {
  return {.code = Code::kNotFound,
          .operation = "open ofi",
          .detail = there.empty() ? what + "; there is none"
                                  : fmt::format("{}; there is: {}", what, fmt::join(there, ", ")),
          .remedy = there.empty() ? "see what `fi_info` lists"
                                  : fmt::format("name one of them in {}", setting)};
}

Error unknown(const std::string& what, const std::string& word,
              const std::vector<std::string>& there, const std::string& setting) {
  Error out = notThere(what + " " + word, there, setting);
  if (const std::string near = base::nearest(word, there); !near.empty())
    out.remedy = "did you mean " + near + "?";
  return out;
}

// Adds the variable FI_PROVIDER as a likely cause, because it hides other providers.
Error mindfulOfFilter(Error error) {
  const std::string filter = base::environmentText("FI_PROVIDER=");
  if (filter.empty()) return error;
  error.cause = filter + " hides all others from every program";
  error.remedy = "unset FI_PROVIDER, or " + error.remedy;
  return error;
}

}  // namespace

std::vector<Offer> offersIn(const fi_info* list) {
  std::vector<Offer> out;
  for (; list != nullptr; list = list->next) {
    Offer one = offerOf(*list);
    const auto same = [&](const Offer& other) {
      return other.provider == one.provider && other.device == one.device &&
             other.address == one.address;
    };
    if (std::none_of(out.begin(), out.end(), same)) out.push_back(std::move(one));
  }
  return out;
}

bool isRdma(const std::string& provider) {
  constexpr std::array kRdma{"efa", "verbs", "cxi"};
  return isOneOf(kRdma, coreOf(provider));
}

Result<std::string> providerFor(const std::string& wanted, std::span<const Offer> offers) {
  const auto there = each(offers, &Offer::provider);
  const std::string setting = core::settingName("ofi_provider", "VIADUCT_OFI_PROVIDER");
  if (wanted.empty()) {
    for (const std::string name : kPreference)
      if (std::any_of(offers.begin(), offers.end(),
                      [&](const Offer& one) { return one.usable && one.provider == name; }))
        return name;
    return notThere("libfabric has no provider for automatic use", there, setting);
  }
  if (std::find(there.begin(), there.end(), wanted) != there.end()) return wanted;
  for (const std::string& name : there)
    if (coreOf(name) == wanted) return name;
  return unknown("libfabric has no provider", wanted, there, setting);
}

Result<Offer> deviceFor(const std::string& rail, const std::string& provider,
                        std::span<const Offer> offers) {
  std::vector<Offer> mine;
  for (const bool ipv6 : {false, true})
    std::copy_if(offers.begin(), offers.end(), std::back_inserter(mine),
                 [&](const Offer& one) { return one.provider == provider && one.ipv6 == ipv6; });
  const auto first = [&](auto fits) {
    const auto found = std::find_if(mine.begin(), mine.end(), fits);
    return found == mine.end() ? nullptr : &*found;
  };
  // Needed for providers whose domains do not have the interface's name.
  const auto device = host::findDevice(rail);
  const Offer* found = first([&](const Offer& one) { return rail.empty() || one.address == rail; });
  if (found == nullptr)
    found = first([&](const Offer& one) { return one.device == rail || one.nic == rail; });
  if (found == nullptr && device)
    found = first([&](const Offer& one) {
      return std::find(device->addresses.begin(), device->addresses.end(), one.address) !=
             device->addresses.end();
    });
  if (found != nullptr) return *found;
  auto there = each(mine, &Offer::device);
  for (std::string& address : each(mine, &Offer::address)) there.push_back(std::move(address));
  Error why = unknown(provider + " has no device", rail, there,
                      core::settingName("rails", "VIADUCT_RAILS"));
  why.device = rail;
  if (device) {
    why.cause = "its link is down: libfabric lists no interface without a carrier";
    why.remedy = "bring the link up";
  }
  return why;
}

namespace {

// The kernel's name of the NIC. If libfabric does not know it, the name of the domain.
const std::string& nicOf(const Offer& offer) {
  return offer.nic.empty() ? offer.device : offer.nic;
}

// The usable offers, one for each device.
std::vector<Offer> eachUsable(const std::string& provider, std::span<const Offer> offers) {
  std::vector<Offer> out;
  for (const std::string& device : each(offers, &Offer::device)) {
    const auto first = deviceFor(device, provider, offers);
    if (first && first->usable && first->device == device) out.push_back(*first);
  }
  return out;
}

}  // namespace

move::NearRails nearRails(std::span<const Offer> opened, const host::Tree& tree) {
  std::vector<std::string> nics;
  std::transform(opened.begin(), opened.end(), std::back_inserter(nics), nicOf);
  return move::NearRails(nics, tree);
}

Result<RailOffers> railsFor(std::span<const std::string> named, const std::string& provider,
                            std::span<const Offer> offers, const host::Tree& tree) {
  RailOffers out;
  for (const std::string& rail : named) {
    VIADUCT_TRY(out.offers.emplace_back(), deviceFor(rail, provider, offers));
  }
  if (!named.empty()) return out;
  const std::vector<Offer> all =
      isRdma(provider) ? eachUsable(provider, offers) : std::vector<Offer>();
  const auto nics = each(all, &nicOf);
  const auto near = host::nearOwnCpus(nics, tree).near;
  for (const Offer& one : all)
    if (out.offers.size() < move::kMaxRails &&
        std::find(near.begin(), near.end(), nicOf(one)) != near.end())
      out.offers.push_back(one);
    else
      out.left_out.push_back(one.device);
  if (!out.offers.empty()) return out;
  VIADUCT_TRY(out.offers.emplace_back(), deviceFor("", provider, offers));
  return out;
}

namespace {

// All modes, including those that we refuse. Otherwise such a provider would not be listed, and the
// error could not name it.
constexpr int kAnyMode =
    FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY | FI_MR_RAW | FI_MR_ENDPOINT;
// The modes for providers that register memory for each endpoint. FI_MR_PROV_KEY is left out, so
// that Viaduct can use one key at all endpoints.
constexpr int kEndpointMode = FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_ENDPOINT;

bool forEndpoints(const Offer& offer) {
  return (offer.info->domain_attr->mr_mode & FI_MR_ENDPOINT) != 0;
}
bool connects(const Offer& offer) {
  return isOneOf(kConnected, offer.provider) && !forEndpoints(offer);
}

// The version of libfabric that registers memory by a descriptor of a dma-buf (FI_MR_DMABUF).
constexpr std::uint32_t kDmaBuf = FI_VERSION(1, 20);

// Asks libfabric for its list for endpoints of this type, with this order of writes and these
// modes. `more`: capabilities beside FI_RMA.
Result<Info> ask(const OfiLibrary& ofi, fi_ep_type type, std::uint64_t order, int mr_mode,
                 std::uint64_t more = 0) {
  Info hints(ofi.fi_dupinfo(nullptr));
  if (!hints) return Error{.code = Code::kExhausted, .operation = "fi_dupinfo", .device = "ofi"};
  hints->caps = FI_RMA | more;
  hints->mode = 0;
  hints->ep_attr->type = type;
  hints->tx_attr->msg_order = order;
  fi_domain_attr& domain = *hints->domain_attr;
  domain.threading = FI_THREAD_DOMAIN;
  domain.control_progress = FI_PROGRESS_MANUAL;
  domain.data_progress = FI_PROGRESS_MANUAL;
  domain.mr_mode = mr_mode;
  fi_info* list = nullptr;
  const int rc = ofi.fi_getinfo(kSpoken, nullptr, nullptr, 0, hints.get(), &list);
  if (rc == -FI_ENODATA) return Info();
  if (rc != 0) return ofiError(Code::kDevice, "fi_getinfo", rc, "ofi");
  return Info(list);
}

// Opens the rails' domains. If one rail that the user has named fails, all fail. Other rails that
// fail are skipped.
Status openRails(const OfiLibrary& ofi, const Settings& settings, const RailOffers& rails,
                 Fabric& out) {
  Status last = Ok{};
  std::vector<Offer> opened;
  for (std::size_t i = 0; i < rails.offers.size(); ++i) {
    const Offer& offer = rails.offers[i];
    auto domain = OfiDomain::open(ofi, *offer.info, settings);
    if (!domain) {
      if (!settings.rails.empty()) return std::move(domain).error();
      last = std::move(domain).error();
      base::log(base::LogLevel::kWarning, "ofi: {} is skipped: {}", offer.device,
                last.error().text());
      continue;
    }
    // Two addresses of one interface are two rails.
    const bool twice =
        std::find(out.names.begin(), out.names.end(), offer.device) != out.names.end();
    out.names.push_back(twice ? settings.rails[i] : offer.device);
    out.domains.push_back(*std::move(domain));
    opened.push_back(offer);
  }
  if (settings.rails.empty()) out.near = nearRails(opened);
  return out.domains.empty() ? last : Ok{};
}

// All offers, best first. Connected endpoints come first, because they report a lost peer; ordered
// writes come before unordered. Unusable offers come last. The offers point into `lists`.
Result<std::vector<Offer>> askAll(const OfiLibrary& ofi, std::vector<Info>& lists) {
  std::vector<Offer> out, refused;
  const auto take = [&](const std::vector<Offer>& offers, auto fits) {
    for (const Offer& one : offers)
      if (fits(one)) (one.usable ? out : refused).push_back(one);
  };
  constexpr std::array kOrders{std::uint64_t{FI_ORDER_RMA_WAW}, std::uint64_t{0}};
  for (const std::uint64_t order : kOrders) {
    VIADUCT_TRY(lists.emplace_back(), ask(ofi, FI_EP_MSG, order, kAnyMode));
    take(offersIn(lists.back().get()), connects);
  }
  for (const std::uint64_t order : kOrders) {
    VIADUCT_TRY(lists.emplace_back(), ask(ofi, FI_EP_RDM, order, kAnyMode));
    const auto all = offersIn(lists.back().get());
    take(all, [](const Offer&) { return true; });
    if (std::none_of(all.begin(), all.end(), forEndpoints)) continue;
    VIADUCT_TRY(lists.emplace_back(), ask(ofi, FI_EP_RDM, order, kEndpointMode));
    take(offersIn(lists.back().get()), forEndpoints);
  }
  out.insert(out.end(), refused.begin(), refused.end());
  return out;
}

// The providers for memory of devices.
std::vector<std::string> withHmem(const OfiLibrary& ofi) {
  const auto list = ask(ofi, FI_EP_RDM, 0, kAnyMode | FI_MR_HMEM, FI_HMEM);
  if (!list) return {};
  return each(offersIn(list->get()), &Offer::provider);
}

}  // namespace

std::string whyGpuIsStaged(std::uint32_t library, const std::string& provider,
                           std::span<const std::string> with_hmem) {
  if (!isRdma(provider)) return move::kHostMemoryOnly;
  if (FI_VERSION_LT(library, kDmaBuf))
    return fmt::format("libfabric {}.{} has no FI_MR_DMABUF, which {}.{} has", FI_MAJOR(library),
                       FI_MINOR(library), FI_MAJOR(kDmaBuf), FI_MINOR(kDmaBuf));
  if (std::find(with_hmem.begin(), with_hmem.end(), provider) == with_hmem.end())
    return "libfabric offers no FI_HMEM for " + provider;
  return move::kHostMemoryOnly;
}

namespace {

std::string describe(const OfiLibrary& ofi, const Fabric& chosen, const RailOffers& rails) {
  const EndpointProfile& profile = static_cast<const OfiDomain&>(*chosen.domains.front()).profile();
  std::string out =
      fmt::format("libfabric {}, {} over {}{}; inject {}, doorbell {}, {}", ofi.version,
                  chosen.kind, fmt::join(chosen.names, ", "), notNear(rails.left_out),
                  profile.inject, profile.doorbell ? "shared" : "each",
                  profile.ordered ? "writes in order" : "writes in no order");
  if (const std::uint64_t below = chosen.can.pack_below; below != 0)
    out += fmt::format("; long lists of pieces below {} are packed", base::showSize(below));
  out += move::gpuIsStaged(
      [&] { return whyGpuIsStaged(ofi.fi_version(), chosen.kind, withHmem(ofi)); });
  if (const std::string set = base::environmentText("FI_"); !set.empty()) out += "; " + set;
  return out;
}

}  // namespace

Result<Fabric> choose(const Settings& settings) {
  const bool named = namedIn(settings, "ofi");
  if (!named && host::rdmaPorts().empty() && host::cxiNics().empty())
    return notOpenedUnasked("ofi", "this host has no RDMA device");
  VIADUCT_TRY(const OfiLibrary* const ofi, library());
  std::vector<Info> lists;
  VIADUCT_TRY(const auto offers, askAll(*ofi, lists));
  const auto found = providerFor(settings.ofi_provider, offers);
  if (!found) return mindfulOfFilter(found.error());
  const std::string& provider = *found;
  const bool rdma = isRdma(provider);
  if (!named && !rdma)
    return notOpenedUnasked("ofi", fmt::format("libfabric shows no RDMA provider: {}",
                                               fmt::join(each(offers, &Offer::provider), ", ")));
  const bool same_host = isOneOf(kMemory, provider);
  Fabric out{.can = {.name = "ofi",
                     .memory = {MemoryKind::kHost},
                     .same_host = same_host,
                     .rdma = rdma,
                     .tcp = !rdma && !same_host,
                     .side_by_side = true,  // FI_THREAD_DOMAIN, and each rail has a domain
                     .checks_rights = true,
                     .preference = rdma ? 20 : 34,
                     .pack_below = rdma || same_host ? 0U : kPackBelow},
             .kind = provider};
  VIADUCT_TRY(const RailOffers rails, railsFor(settings.rails, provider, offers));
  VIADUCT_CHECK(openRails(*ofi, settings, rails, out));
  out.description = describe(*ofi, out, rails);
  return out;
}

}  // namespace viaduct::ofi
