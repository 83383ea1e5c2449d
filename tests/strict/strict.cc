// A libfabric provider that registers memory for each endpoint (FI_MR_ENDPOINT) and enforces every
// rule, as cxi does. A region is reachable only once it is bound to an enabled endpoint. Two
// regions of a domain never share a key. If this provider may choose keys, it chooses unusual ones.
// `tcp;ofi_rxm` does all other work: some calls in its objects are replaced. `tcp;ofi_rxm` gets a
// region when the region is enabled here. A domain accepts one endpoint, so that no region is
// reached through another endpoint.
//
// libfabric loads it from FI_PROVIDER_PATH. A broken rule that no status can report ends the
// program.
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/providers/fi_prov.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <set>

namespace {

constexpr const char* kBelow = "tcp;ofi_rxm";

void insist(bool well, const char* what) {
  if (well) return;
  std::fprintf(stderr, "strict provider: %s\n", what);
  std::abort();
}

// The replaced calls of one object, with the original table.
template <class Ops>
struct Calls {
  Ops ours;
  Ops* below;
  explicit Calls(Ops*& table) : ours(*table), below(table) { table = &ours; }
};

struct Fabric {
  Calls<fi_ops_fabric> calls;  // first, so that the object's table leads to this struct
  Calls<fi_ops> fid;
  explicit Fabric(fid_fabric& one) : calls(one.ops), fid(one.fid.ops) {}
};
struct Domain {
  Calls<fi_ops_domain> calls;
  Calls<fi_ops> fid;
  Calls<fi_ops_mr> memory;
  fid_domain& self;
  std::set<std::uint64_t> keys = {};
  int endpoints = 0;
  explicit Domain(fid_domain& one) : calls(one.ops), fid(one.fid.ops), memory(one.mr), self(one) {}
};
struct Endpoint {
  Calls<fi_ops> fid;
  Domain& domain;
  bool enabled = false;
  int regions = 0;
  Endpoint(fid_ep& one, Domain& of) : fid(one.fid.ops), domain(of) {}
};
struct Region {
  fid_mr mr;
  Domain& domain;
  const void* start;
  std::size_t bytes;
  std::uint64_t access;
  Endpoint* endpoint = nullptr;
  fid_mr* below = nullptr;  // exists once the region is enabled
};

template <class One, class Table>
One& of(Table* table) {
  return *reinterpret_cast<One*>(table);
}
// The object that starts with this fid.
template <class Object>
Object& whole(fid* one) {
  return *reinterpret_cast<Object*>(one);
}

fi_info* translated(const fi_info& info) {
  fi_info* const out = fi_dupinfo(&info);
  std::free(out->fabric_attr->prov_name);
  out->fabric_attr->prov_name = ::strdup(kBelow);
  out->domain_attr->mr_mode = 0;
  return out;
}

int closeRegion(fid* one) {
  auto& region = whole<Region>(one);
  if (region.below != nullptr) fi_close(&region.below->fid);
  if (region.endpoint != nullptr) --region.endpoint->regions;
  region.domain.keys.erase(region.mr.key);
  delete &region;
  return 0;
}

int closeEndpoint(fid* one);

int bindRegion(fid* one, fid* other, std::uint64_t flags) {
  auto& region = whole<Region>(one);
  if (other->fclass != FI_CLASS_EP || other->ops->close != closeEndpoint || flags != 0)
    return -FI_EINVAL;
  auto& endpoint = of<Endpoint>(other->ops);
  if (region.endpoint != nullptr || &endpoint.domain != &region.domain || !endpoint.enabled)
    return -FI_EINVAL;
  region.endpoint = &endpoint;
  ++endpoint.regions;
  return 0;
}

int controlRegion(fid* one, int command, void*) {
  auto& region = whole<Region>(one);
  if (command != FI_ENABLE || region.endpoint == nullptr) return -FI_EINVAL;
  if (region.below != nullptr) return 0;
  Domain& domain = region.domain;
  return domain.memory.below->reg(&domain.self.fid, region.start, region.bytes, region.access, 0,
                                  region.mr.key, 0, &region.below, nullptr);
}

fi_ops region_calls{.size = sizeof(fi_ops),
                    .close = closeRegion,
                    .bind = bindRegion,
                    .control = controlRegion,
                    .ops_open = nullptr,
                    .tostr = nullptr,
                    .ops_set = nullptr};

int registerMemory(fid* one, const void* start, std::size_t bytes, std::uint64_t access,
                   std::uint64_t offset, std::uint64_t key, std::uint64_t flags, fid_mr** out,
                   void* context) {
  auto& domain = of<Domain>(whole<fid_domain>(one).ops);
  if (offset != 0 || flags != 0) return -FI_EINVAL;
  if (!domain.keys.insert(key).second) return -FI_ENOKEY;
  const fid face{.fclass = FI_CLASS_MR, .context = context, .ops = &region_calls};
  *out = &(new Region{.mr = {.fid = face, .mem_desc = nullptr, .key = key},
                      .domain = domain,
                      .start = start,
                      .bytes = bytes,
                      .access = access})
              ->mr;
  return 0;
}

int closeEndpoint(fid* one) {
  auto& endpoint = of<Endpoint>(one->ops);
  insist(endpoint.regions == 0, "an endpoint is closed before the memory that is bound to it");
  one->ops = endpoint.fid.below;
  --endpoint.domain.endpoints;
  delete &endpoint;
  return fi_close(one);
}

int controlEndpoint(fid* one, int command, void* argument) {
  auto& endpoint = of<Endpoint>(one->ops);
  const int rc = endpoint.fid.below->control(one, command, argument);
  if (command == FI_ENABLE && rc == 0) endpoint.enabled = true;
  return rc;
}

int openEndpoint(fid_domain* in, fi_info* info, fid_ep** out, void* context) {
  auto& domain = of<Domain>(in->ops);
  insist(domain.endpoints == 0, "a domain takes one endpoint here");
  fi_info* const below = translated(*info);
  const int rc = domain.calls.below->endpoint(in, below, out, context);
  fi_freeinfo(below);
  if (rc != 0) return rc;
  auto* const endpoint = new Endpoint(**out, domain);
  endpoint->fid.ours.close = closeEndpoint;
  endpoint->fid.ours.control = controlEndpoint;
  ++domain.endpoints;
  return 0;
}

int closeDomain(fid* one) {
  auto& self = whole<fid_domain>(one);
  auto& domain = of<Domain>(self.ops);
  insist(domain.endpoints == 0 && domain.keys.empty(), "a domain is closed before what is in it");
  self.ops = domain.calls.below;
  self.mr = domain.memory.below;
  one->ops = domain.fid.below;
  delete &domain;
  return fi_close(one);
}

int openDomain(fid_fabric* in, fi_info* info, fid_domain** out, void* context) {
  if (info->domain_attr->mr_mode != FI_MR_ENDPOINT) return -FI_EINVAL;
  fi_info* const below = translated(*info);
  const int rc = of<Fabric>(in->ops).calls.below->domain(in, below, out, context);
  fi_freeinfo(below);
  if (rc != 0) return rc;
  auto* const domain = new Domain(**out);
  domain->calls.ours.endpoint = openEndpoint;
  domain->fid.ours.close = closeDomain;
  domain->memory.ours.reg = registerMemory;
  return 0;
}

int closeFabric(fid* one) {
  auto& self = whole<fid_fabric>(one);
  auto& fabric = of<Fabric>(self.ops);
  self.ops = fabric.calls.below;
  one->ops = fabric.fid.below;
  delete &fabric;
  return fi_close(one);
}

int openFabric(fi_fabric_attr* attributes, fid_fabric** out, void* context) {
  fi_fabric_attr below = *attributes;
  below.prov_name = const_cast<char*>(kBelow);
  if (const int rc = fi_fabric(&below, out, context); rc != 0) return rc;
  auto* const fabric = new Fabric(**out);
  fabric->calls.ours.domain = openDomain;
  fabric->fid.ours.close = closeFabric;
  return 0;
}

int getInfo(std::uint32_t version, const char* node, const char* service, std::uint64_t flags,
            const fi_info* hints, fi_info** out) {
  if (hints == nullptr || hints->ep_attr == nullptr || hints->ep_attr->type != FI_EP_RDM ||
      hints->domain_attr == nullptr || (hints->domain_attr->mr_mode & FI_MR_ENDPOINT) == 0)
    return -FI_ENODATA;
  const int keys = hints->domain_attr->mr_mode & FI_MR_PROV_KEY;
  fi_info* const below = translated(*hints);
  const int rc = fi_getinfo(version, node, service, flags, below, out);
  fi_freeinfo(below);
  if (rc != 0) return rc;
  for (fi_info* one = *out; one != nullptr; one = one->next) {
    std::free(one->fabric_attr->prov_name);
    one->fabric_attr->prov_name = nullptr;  // libfabric writes its own name there
    one->domain_attr->mr_mode = FI_MR_ENDPOINT | keys;
  }
  return 0;
}

fi_provider provider{.version = FI_VERSION(1, 0),
                     .fi_version = FI_VERSION(1, 17),
                     .context = {},
                     .name = "tcp_strict",
                     .getinfo = getInfo,
                     .fabric = openFabric,
                     .cleanup = [] {}};

}  // namespace

// NOLINTBEGIN(readability-identifier-naming): libfabric looks for this name
extern "C" __attribute__((visibility("default"))) fi_provider* fi_prov_ini();
extern "C" fi_provider* fi_prov_ini() { return &provider; }
// NOLINTEND(readability-identifier-naming)
