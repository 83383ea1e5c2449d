#include "backends/ofi/ground.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "backends/ofi/choose.h"
#include "backends/ofi/conduit.h"
#include "backends/ofi/remote_key.h"
#include "base/random.h"

namespace viaduct::ofi {
namespace {

// What the poster has under way at most, in pieces.
constexpr std::size_t kWindow = 1024;
// Somebody else in this process may have asked the provider for the same number.
constexpr int kKeyTries = 4;

// With some providers it is all that keeps strangers out.
Result<std::uint64_t> unguessable(std::size_t key_bytes) {
  VIADUCT_TRY(const std::uint64_t key, base::secretNumber());
  return key_bytes >= sizeof key ? key : key & ((std::uint64_t{1} << (8 * key_bytes)) - 1);
}

}  // namespace

Manner mannerOf(const fi_info& info, const Settings& settings) {
  constexpr std::uint64_t kWritesInOrder = FI_ORDER_RMA_WAW | FI_ORDER_WAW;
  // Where there is no NIC to ring at, it only costs (docs/measured/ofi.md).
  const bool rings = isRdma(info.fabric_attr->prov_name);
  return {.inject = settings.inject == Toggle::kOff ? 0 : info.tx_attr->inject_size,
          .doorbell = settings.doorbell == Toggle::kAuto ? rings : settings.doorbell == Toggle::kOn,
          .ordered = (info.tx_attr->msg_order & kWritesInOrder) != 0 &&
                     info.ep_attr->max_order_waw_size >= kMostPiece,
          .depth = static_cast<std::uint32_t>(std::min(info.tx_attr->size, kWindow))};
}

std::string refusedModes(int mr_mode) {
  if ((mr_mode & FI_MR_RAW) != 0) return "its keys are longer than a number (FI_MR_RAW)";
  if ((mr_mode & FI_MR_ENDPOINT) != 0)
    return "it registers memory for each endpoint anew (FI_MR_ENDPOINT)";
  return {};
}

Ground::Ground(const Library& ofi, Info info, const Manner& manner)
    : ofi_(ofi),
      info_(std::move(info)),
      manner_(manner),
      provider_(info_->fabric_attr->prov_name),
      device_(provider_ + "/" + info_->domain_attr->name) {
  info_->tx_attr->size = manner.depth;
}

Result<std::unique_ptr<Ground>> Ground::open(const Library& ofi, const fi_info& info,
                                             const Settings& settings) {
  const Manner manner = mannerOf(info, settings);
  Info copy(ofi.fi_dupinfo(&info));
  if (!copy) return Error{.code = Code::kExhausted, .operation = "fi_dupinfo", .device = "ofi"};
  std::unique_ptr<Ground> out(new Ground(ofi, std::move(copy), manner));
  std::string refused = refusedModes(info.domain_attr->mr_mode);
  if (refused.empty() && info.ep_attr->max_msg_size < kMostPiece)
    refused = fmt::format("it moves {} bytes at once; {} are needed", info.ep_attr->max_msg_size,
                          kMostPiece);
  if (refused.empty() && manner.depth < 2) refused = "it takes one order at a time";
  if (!refused.empty())
    return Error{.code = Code::kUnsupported,
                 .operation = "open ofi",
                 .detail = fmt::format("{} cannot be used: {}", out->provider_, refused),
                 .device = out->device_,
                 .remedy = "name another provider in VIADUCT_OFI_PROVIDER"};
  VIADUCT_TRY(out->fabric_, out->fabricAnew());
  fid_domain* domain = nullptr;
  if (const int rc = fi_domain(out->fabric_.get(), out->info_.get(), &domain, nullptr); rc != 0)
    return ofiError(Code::kDevice, "fi_domain", rc, out->device_);
  out->domain_.reset(domain);
  return out;
}

Result<Fid<fid_fabric>> Ground::fabricAnew() const {
  fid_fabric* fabric = nullptr;
  if (const int rc = ofi_.fi_fabric(info_->fabric_attr, &fabric, nullptr); rc != 0)
    return ofiError(Code::kDevice, "fi_fabric", rc, device_);
  return Fid<fid_fabric>(fabric);
}

Result<std::unique_ptr<core::fabric::Conduit>> Ground::open() const {
  VIADUCT_TRY(auto conduit, Conduit::open(*this));
  return std::unique_ptr<core::fabric::Conduit>(std::move(conduit));
}

Result<Fid<fid_mr>> Ground::registered(std::uint64_t address, std::uint64_t bytes) const {
  constexpr std::uint64_t kAccess = FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE;
  // NOLINTNEXTLINE(performance-no-int-to-ptr): what is to be registered comes as a number
  const void* const start = reinterpret_cast<const void*>(static_cast<std::uintptr_t>(address));
  const bool chosen_here = (info_->domain_attr->mr_mode & FI_MR_PROV_KEY) == 0;
  int rc = 0;
  for (int i = 0; i < kKeyTries; ++i) {
    std::uint64_t key = 0;
    if (chosen_here) {
      VIADUCT_TRY(key, unguessable(info_->domain_attr->mr_key_size));
    }
    fid_mr* region = nullptr;
    rc = fi_mr_reg(domain_.get(), start, bytes, kAccess, 0, key, 0, &region, nullptr);
    if (rc == 0) return Fid<fid_mr>(region);
    if (rc != -FI_ENOKEY) break;
  }
  Error why = ofiError(Code::kDevice, "fi_mr_reg", rc, device_);
  why.detail += fmt::format(" ({} bytes at {:#x})", bytes, address);
  if (rc == -FI_ENOMEM) why.remedy = "look at `ulimit -l`: registered memory is locked";
  return why;
}

Result<std::unique_ptr<core::fabric::Registration>> Ground::add(std::uint64_t address,
                                                                std::uint64_t bytes) const {
  VIADUCT_TRY(auto region, registered(address, bytes));
  const bool by_address = (info_->domain_attr->mr_mode & FI_MR_VIRT_ADDR) != 0;
  const RemoteMemory there{.key = fi_mr_key(region.get()), .base = by_address ? 0 : address};
  if (there.key == FI_KEY_NOTAVAIL)
    return Error{.code = Code::kDevice,
                 .operation = "fi_mr_key",
                 .detail = "the provider gives no key",
                 .device = device_};
  return std::unique_ptr<core::fabric::Registration>(
      std::make_unique<Memory>(packed(there), std::move(region)));
}

}  // namespace viaduct::ofi
