#include "backends/ofi/ofi_domain.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "backends/ofi/choose.h"
#include "backends/ofi/ofi_endpoint.h"
#include "backends/ofi/remote_key.h"
#include "core/setting_name.h"

namespace viaduct::ofi {
namespace {

// The most pieces that a move::Poster has in flight.
constexpr std::size_t kWindow = 1024;

}  // namespace

EndpointProfile profileOf(const fi_info& info, const Settings& settings) {
  constexpr std::uint64_t kWritesInOrder = FI_ORDER_RMA_WAW | FI_ORDER_WAW;
  // Without a NIC a shared doorbell only costs time (docs/measured/ofi.md).
  const bool rings = isRdma(info.fabric_attr->prov_name);
  return {.inject = settings.inject == Toggle::kOff ? 0 : info.tx_attr->inject_size,
          .doorbell = settings.doorbell == Toggle::kAuto ? rings : settings.doorbell == Toggle::kOn,
          .ordered = (info.tx_attr->msg_order & kWritesInOrder) != 0 &&
                     info.ep_attr->max_order_waw_size >= kMostPiece,
          .depth = static_cast<std::uint32_t>(std::min(info.tx_attr->size, kWindow))};
}

std::string refusedModes(int mr_mode) {
  if ((mr_mode & FI_MR_RAW) != 0) return "its keys are longer than a number (FI_MR_RAW)";
  if ((mr_mode & FI_MR_ENDPOINT) == 0) return {};
  if ((mr_mode & FI_MR_PROV_KEY) != 0)
    return "it registers memory for each endpoint, with keys of its own (FI_MR_ENDPOINT and "
           "FI_MR_PROV_KEY)";
  if ((mr_mode & FI_MR_LOCAL) != 0)
    return "it registers memory for each endpoint, for both sides (FI_MR_ENDPOINT and "
           "FI_MR_LOCAL)";
  return {};
}

OfiDomain::OfiDomain(const OfiLibrary& ofi, Info info, const EndpointProfile& profile)
    : ofi_(ofi),
      info_(std::move(info)),
      profile_(profile),
      provider_(info_->fabric_attr->prov_name),
      device_(provider_ + "/" + info_->domain_attr->name) {
  info_->tx_attr->size = profile.depth;
}

Result<std::unique_ptr<OfiDomain>> OfiDomain::open(const OfiLibrary& ofi, const fi_info& info,
                                                   const Settings& settings) {
  const EndpointProfile profile = profileOf(info, settings);
  Info copy(ofi.fi_dupinfo(&info));
  if (!copy) return Error{.code = Code::kExhausted, .operation = "fi_dupinfo", .device = "ofi"};
  std::unique_ptr<OfiDomain> out(new OfiDomain(ofi, std::move(copy), profile));
  std::string refused = refusedModes(info.domain_attr->mr_mode);
  if (refused.empty() && info.ep_attr->max_msg_size < kMostPiece)
    refused = fmt::format("it moves at most {} bytes at once; {} are needed",
                          info.ep_attr->max_msg_size, kMostPiece);
  if (refused.empty() && profile.depth < 2) refused = "it accepts one work request at a time";
  if (!refused.empty())
    return Error{.code = Code::kUnsupported,
                 .operation = "open ofi",
                 .detail = fmt::format("{} cannot be used: {}", out->provider_, refused),
                 .device = out->device_,
                 .remedy = "name another provider in " +
                           core::settingName("ofi_provider", "VIADUCT_OFI_PROVIDER")};
  VIADUCT_TRY(out->fabric_, out->fabricAnew());
  VIADUCT_TRY(out->domain_, out->openDomain());
  const fi_domain_attr& domain = *out->info_->domain_attr;
  if ((domain.mr_mode & FI_MR_ENDPOINT) != 0) {
    out->domain_.reset();  // it was opened only to see that a domain can be opened
    out->regions_ = std::make_unique<RailRegions>(out->device_, domain.mr_key_size,
                                                  (domain.mr_mode & FI_MR_VIRT_ADDR) != 0);
  }
  return out;
}

Result<std::shared_ptr<fid_domain>> OfiDomain::openDomain() const {
  fid_domain* domain = nullptr;
  if (const int rc = fi_domain(fabric_.get(), info_.get(), &domain, nullptr); rc != 0)
    return ofiError(Code::kDevice, "fi_domain", rc, device_);
  return std::shared_ptr<fid_domain>(domain, CloseFid{});
}

Result<std::shared_ptr<fid_domain>> OfiDomain::domain() const {
  if (regions_) return openDomain();
  return domain_;
}

Result<Fid<fid_fabric>> OfiDomain::fabricAnew() const {
  fid_fabric* fabric = nullptr;
  if (const int rc = ofi_.fi_fabric(info_->fabric_attr, &fabric, nullptr); rc != 0)
    return ofiError(Code::kDevice, "fi_fabric", rc, device_);
  return Fid<fid_fabric>(fabric);
}

Result<std::unique_ptr<move::Endpoint>> OfiDomain::open() const {
  VIADUCT_TRY(auto endpoint, OfiEndpoint::open(*this));
  return std::unique_ptr<move::Endpoint>(std::move(endpoint));
}

Result<Fid<fid_mr>> OfiDomain::registered(const MemoryRange& range) const {
  const bool chosen_here = (info_->domain_attr->mr_mode & FI_MR_PROV_KEY) == 0;
  Fid<fid_mr> region;
  int rc = -FI_ENOKEY;
  // Another user of the provider in this process may have the same key.
  for (int i = 0; i < kKeyTries && rc == -FI_ENOKEY; ++i) {
    std::uint64_t key = 0;
    if (chosen_here) {
      VIADUCT_TRY(key, drawnKey(info_->domain_attr->mr_key_size));
    }
    rc = registerWith(*domain_, range, key, region);
  }
  if (rc != 0) return cannotRegister("fi_mr_reg", rc, range, device_);
  return region;
}

Result<std::unique_ptr<move::Registration>> OfiDomain::add(const MemoryRange& range) const {
  if (regions_) {
    VIADUCT_TRY(auto memory, regions_->add(range));
    return std::unique_ptr<move::Registration>(std::move(memory));
  }
  VIADUCT_TRY(auto region, registered(range));
  const bool by_address = (info_->domain_attr->mr_mode & FI_MR_VIRT_ADDR) != 0;
  const RemoteMemory there{.key = fi_mr_key(region.get()), .base = by_address ? 0 : range.address};
  if (there.key == FI_KEY_NOTAVAIL)
    return Error{.code = Code::kDevice,
                 .operation = "fi_mr_key",
                 .detail = "the provider gives no key",
                 .device = device_};
  return std::unique_ptr<move::Registration>(
      std::make_unique<DomainMemory>(packed(there), std::move(region)));
}

}  // namespace viaduct::ofi
