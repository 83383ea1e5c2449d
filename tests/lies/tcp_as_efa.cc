// A libfabric provider that claims to be `efa` but passes all calls to `tcp;ofi_rxm`: TCP under the
// name of RDMA. libfabric loads it from FI_PROVIDER_PATH in place of its own `efa`.
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/providers/fi_prov.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>

namespace {

constexpr const char* kBelow = "tcp;ofi_rxm";

// All fabrics of the provider below share one table of calls, and so do all its domains.
fi_ops_fabric fabric_calls;
fi_ops_fabric* fabric_below = nullptr;
fi_ops_domain domain_calls;
fi_ops_domain* domain_below = nullptr;

fi_info* translated(const fi_info* info) {
  fi_info* const out = info != nullptr ? fi_dupinfo(info) : fi_allocinfo();
  std::free(out->fabric_attr->prov_name);
  out->fabric_attr->prov_name = ::strdup(kBelow);
  out->fabric_attr->prov_version = 0;  // the provider below would refuse our higher version
  return out;
}

int openEndpoint(fid_domain* in, fi_info* info, fid_ep** out, void* context) {
  fi_info* const below = translated(info);
  const int rc = domain_below->endpoint(in, below, out, context);
  fi_freeinfo(below);
  return rc;
}

int openDomain(fid_fabric* in, fi_info* info, fid_domain** out, void* context) {
  fi_info* const below = translated(info);
  const int rc = fabric_below->domain(in, below, out, context);
  fi_freeinfo(below);
  if (rc != 0) return rc;
  domain_below = (*out)->ops;
  domain_calls = *domain_below;
  domain_calls.endpoint = openEndpoint;
  (*out)->ops = &domain_calls;
  return 0;
}

int openFabric(fi_fabric_attr* attributes, fid_fabric** out, void* context) {
  fi_fabric_attr below = *attributes;
  below.prov_name = const_cast<char*>(kBelow);
  below.prov_version = 0;
  if (const int rc = fi_fabric(&below, out, context); rc != 0) return rc;
  fabric_below = (*out)->ops;
  fabric_calls = *fabric_below;
  fabric_calls.domain = openDomain;
  (*out)->ops = &fabric_calls;
  return 0;
}

int getInfo(std::uint32_t version, const char* node, const char* service, std::uint64_t flags,
            const fi_info* hints, fi_info** out) {
  if (hints == nullptr || hints->ep_attr == nullptr || hints->ep_attr->type != FI_EP_RDM)
    return -FI_ENODATA;
  fi_info* const below = translated(hints);
  const int rc = fi_getinfo(version, node, service, flags, below, out);
  fi_freeinfo(below);
  if (rc != 0) return rc;
  for (fi_info* one = *out; one != nullptr; one = one->next) {
    std::free(one->fabric_attr->prov_name);
    one->fabric_attr->prov_name = nullptr;  // libfabric writes our provider's name there
  }
  return 0;
}

fi_provider provider{.version = FI_VERSION(9999, 0),  // above libfabric's own
                     .fi_version = FI_VERSION(1, 17),
                     .context = {},
                     .name = "efa",
                     .getinfo = getInfo,
                     .fabric = openFabric,
                     .cleanup = [] {}};

}  // namespace

// NOLINTBEGIN(readability-identifier-naming): libfabric looks for this name
extern "C" __attribute__((visibility("default"))) fi_provider* fi_prov_ini();
extern "C" fi_provider* fi_prov_ini() { return &provider; }
// NOLINTEND(readability-identifier-naming)
