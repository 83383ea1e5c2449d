#include "backends/ofi/raw_endpoint.h"

#include <rdma/fi_cm.h>
#include <sys/socket.h>

#include <cstring>
#include <utility>

#include "backends/ofi/addressed_endpoint.h"
#include "backends/ofi/connected_endpoint.h"

namespace viaduct::ofi {
namespace {

constexpr std::size_t kLongestName = 1024;

}  // namespace

Result<std::unique_ptr<RawEndpoint>> RawEndpoint::open(const OfiDomain& ofi_domain,
                                                       fid_domain& domain, fid_cq& queue) {
  return ofi_domain.connects() ? ConnectedEndpoint::open(ofi_domain, domain, queue)
                               : AddressedEndpoint::open(ofi_domain, domain, queue);
}

Error refusedName(const OfiDomain& ofi_domain, std::string detail) {
  return {.code = Code::kProtocol,
          .operation = "ofi join",
          .detail = std::move(detail),
          .device = ofi_domain.device()};
}

Error otherKind(const OfiDomain& ofi_domain) {
  return refusedName(ofi_domain,
                     "the peer's address is of another kind, such as IPv6 against IPv4");
}

bool fits(std::uint32_t format, std::span<const std::byte> theirs,
          std::span<const std::byte> ours) {
  if (theirs.empty() || theirs.size() > kLongestName) return false;
  if (format == FI_ADDR_STR) return theirs.back() == std::byte{0};
  const bool family = format == FI_SOCKADDR_IN || format == FI_SOCKADDR_IN6;
  return theirs.size() == ours.size() &&
         (!family || std::memcmp(theirs.data(), ours.data(), sizeof(sa_family_t)) == 0);
}

Result<Bytes> nameOf(fid& one, const OfiDomain& ofi_domain) {
  Bytes out(kLongestName);
  std::size_t bytes = out.size();
  if (const int rc = fi_getname(&one, out.data(), &bytes); rc != 0)
    return ofiError(Code::kDevice, "fi_getname", rc, ofi_domain.device());
  out.resize(bytes);
  return out;
}

Status enable(fid_ep& endpoint, fid_cq& queue, fid& other, const OfiDomain& ofi_domain) {
  constexpr std::uint64_t kQueue = FI_TRANSMIT | FI_RECV | FI_SELECTIVE_COMPLETION;
  int rc = fi_ep_bind(&endpoint, &queue.fid, kQueue);
  if (rc == 0) rc = fi_ep_bind(&endpoint, &other, 0);
  if (rc != 0) return ofiError(Code::kDevice, "fi_ep_bind", rc, ofi_domain.device());
  if (rc = fi_enable(&endpoint); rc != 0)
    return ofiError(Code::kDevice, "fi_enable", rc, ofi_domain.device());
  return Ok{};
}

}  // namespace viaduct::ofi
