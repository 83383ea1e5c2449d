#include "backends/ucx/choose.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "backends/ucx/library.h"
#include "base/log.h"
#include "host/devices.h"
#include "host/sysfs.h"

namespace viaduct::ucx {
namespace {

bool namedIn(const Settings& settings) {
  return std::find(settings.backends.begin(), settings.backends.end(), "ucx") !=
         settings.backends.end();
}

Error notWorthIt(std::string detail) {
  return {.code = Code::kUnsupported,
          .operation = "open ucx",
          .detail = std::move(detail),
          .device = "ucx",
          .remedy = "name ucx among the backends to use it over TCP all the same"};
}

std::vector<std::string> devicesOf(const std::vector<Transport>& resources) {
  std::vector<std::string> out;
  for (const Transport& one : resources)
    if (realmOf(one.name) != Realm::kMemory &&
        std::find(out.begin(), out.end(), one.device) == out.end())
      out.push_back(one.device);
  return out;
}

// How many letters to change, add or leave out.
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0]++;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t changed = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({changed, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row.back();
}

std::string interfaceOf(const std::string& address) {
  for (const host::Device& device : host::devices())
    if (std::find(device.addresses.begin(), device.addresses.end(), address) !=
        device.addresses.end())
      return device.name;
  return address;
}

}  // namespace

std::string transportsFor(bool user_has_set, bool any_rdma) {
  if (user_has_set) return "";
  // Shared memory is the business of the backend `local`; in UCX it costs 4 MiB and 4 descriptors a
  // peer, and with error handling it is not used (docs/gotchas/ucx.md). And where there is RDMA
  // nothing shall silently go by TCP.
  return any_rdma ? "^shm,tcp" : "^shm";
}

Result<std::string> deviceFor(const std::string& rail, const std::vector<Transport>& resources) {
  const auto there = devicesOf(resources);
  const std::string wanted = interfaceOf(rail);
  for (const std::string& device : there)
    if (device == wanted || device.substr(0, device.find(':')) == wanted) return device;
  std::string near;
  for (const std::string& device : there)
    if (distance(device, rail) <= 2) near += (near.empty() ? "" : " or ") + device;
  return Error{
      .code = Code::kNotFound,
      .operation = "open ucx",
      .detail = fmt::format("UCX has no device {}; there is: {}", rail, fmt::join(there, ", ")),
      .device = rail,
      .remedy = near.empty() ? "name one of those in rails" : "did you mean " + near + "?"};
}

namespace {

// Every rail's context, from what `all` has shown there to be.
Result<Chosen> openRails(const Library& ucx, const Settings& settings, const Choice& common,
                         std::unique_ptr<Context> all) {
  Chosen out;
  for (const std::string& rail : settings.rails) {
    Choice choice = common;
    VIADUCT_TRY(choice.devices, deviceFor(rail, all->resources()));
    VIADUCT_TRY(auto context, Context::open(ucx, choice));
    out.names.push_back(choice.devices);
    out.contexts.push_back(std::move(context));
  }
  if (!out.contexts.empty()) return out;
  out.names.emplace_back("any");
  out.contexts.push_back(std::move(all));
  return out;
}

}  // namespace

Result<Chosen> choose(const Settings& settings) {
  const bool named = namedIn(settings);
  if (!named && host::rdmaPorts("/").empty()) return notWorthIt("this host has no RDMA device");
  VIADUCT_TRY(const Library* const ucx, library());
  const bool user_chose = userHasSet("UCX_TLS");
  Choice choice{.transports = transportsFor(user_chose, false)};
  VIADUCT_TRY(auto all, Context::open(*ucx, choice));
  const bool rdma = anyOf(all->resources(), Realm::kRdma);
  if (!named && !rdma)
    return notWorthIt("UCX shows no RDMA transport: " + listText(all->resources()));
  choice.transports = transportsFor(user_chose, rdma);
  const bool tcp = anyOf(all->resources(), Realm::kTcp) && (user_chose || !rdma);
  choice.connect_later = tcp && !userHasSet("UCX_TCP_CONN_NB");
  VIADUCT_TRY(all, Context::open(*ucx, choice));
  VIADUCT_TRY(auto out, openRails(*ucx, settings, choice, std::move(all)));
  out.rdma = rdma && !tcp;
  return out;
}

}  // namespace viaduct::ucx
