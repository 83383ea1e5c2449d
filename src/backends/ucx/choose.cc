#include "backends/ucx/choose.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <utility>

#include "backends/ucx/library.h"
#include "base/environment.h"
#include "base/log.h"
#include "base/nearest.h"
#include "core/setting_name.h"
#include "host/devices.h"
#include "host/nearness.h"
#include "host/rdma.h"
#include "move/auto_open.h"
#include "move/fabric_message.h"

namespace viaduct::ucx {
namespace {

using move::Fabric;
using move::namedIn;
using move::notNear;
using move::notOpenedUnasked;

std::vector<std::string> devicesOf(const std::vector<Transport>& resources) {
  std::vector<std::string> out;
  for (const Transport& one : resources)
    if (kindOf(one.name) != TransportKind::kMemory &&
        std::find(out.begin(), out.end(), one.device) == out.end())
      out.push_back(one.device);
  return out;
}

// The value in UCX's own files (ucx.conf), which count like the environment. Empty if the
// environment sets the variable, or the files do not.
std::string inFile(const UcxLibrary& ucx, const char* variable) {
  if (userHasSet(variable)) return {};
  std::string value = settingInForce(ucx, variable);
  return value == "all" ? std::string() : value;  // the default
}
bool userChose(const UcxLibrary& ucx, const char* variable) {
  return userHasSet(variable) || !inFile(ucx, variable).empty();
}

// The user's settings for UCX, from the environment and, for two variables, from UCX's files.
std::string settingsText(const UcxLibrary& ucx) {
  std::string out = base::environmentText("UCX_");
  for (const char* variable : {"UCX_TLS", "UCX_NET_DEVICES"})
    if (const std::string value = inFile(ucx, variable); !value.empty())
      out += fmt::format("{}{}={} (ucx.conf)", out.empty() ? "" : " ", variable, value);
  return out;
}

}  // namespace

bool fitUnasked(unsigned major, unsigned minor) { return major > 1 || (major == 1 && minor >= 14); }

std::string transportsFor(bool user_has_set, bool any_rdma) {
  if (user_has_set) return "";
  // Excludes shared memory, because the backend `local` serves peers on this host. UCX's shared
  // memory costs 4 MiB and 4 descriptors a peer, and is not used with error handling
  // (docs/gotchas/ucx.md). On a host with RDMA, nothing shall use TCP silently.
  return any_rdma ? "^shm,tcp" : "^shm";
}

Result<std::string> deviceFor(const std::string& rail, const std::vector<Transport>& resources) {
  const auto there = devicesOf(resources);
  const auto known = host::findDevice(rail);
  const std::string& wanted = known ? known->name : rail;
  for (const std::string& device : there)
    if (device == wanted || device.substr(0, device.find(':')) == wanted) return device;
  const std::string near = base::nearest(rail, there);
  return Error{
      .code = Code::kNotFound,
      .operation = "open ucx",
      .detail = fmt::format("UCX has no device {}; there is: {}", rail, fmt::join(there, ", ")),
      .device = rail,
      .remedy = near.empty() ? "name one of them in " + core::settingName("rails", "VIADUCT_RAILS")
                             : "did you mean " + near + "?"};
}

Result<RailDevices> railsFor(const std::vector<std::string>& named,
                             const std::vector<Transport>& resources, bool user_chose_devices,
                             const host::Tree& tree) {
  RailDevices out;
  for (const std::string& rail : named) {
    VIADUCT_TRY(out.devices.emplace_back(), deviceFor(rail, resources));
  }
  if (!named.empty() || user_chose_devices) return out;
  std::vector<Transport> rdma;
  std::copy_if(resources.begin(), resources.end(), std::back_inserter(rdma),
               [](const Transport& one) { return kindOf(one.name) == TransportKind::kRdma; });
  auto [near, rest] = host::nearOwnCpus(devicesOf(rdma), tree);
  for (std::string& device : near)
    (out.devices.size() < move::kMaxRails ? out.devices : rest).push_back(std::move(device));
  out.left_out = std::move(rest);
  return out;
}

std::string whyGpuIsStaged(std::uint64_t memory_types) {
  if ((memory_types & UCS_BIT(UCS_MEMORY_TYPE_CUDA)) == 0) return "this UCX has no CUDA";
  return move::kHostMemoryOnly;
}

namespace {

// Opens each rail's context, on devices that the context `all` has. If one rail that the user has
// named fails, all fail. Other rails that fail are skipped.
Status openRails(const UcxLibrary& ucx, const Settings& settings, const ContextOptions& common,
                 std::unique_ptr<Context> all, Fabric& out) {
  VIADUCT_TRY(const RailDevices rails,
              railsFor(settings.rails, all->resources(),
                       !common.rdma_only || userChose(ucx, "UCX_NET_DEVICES")));
  std::vector<Transport> there;
  const auto add = [&](std::string name, std::unique_ptr<Context> context) {
    for (const Transport& one : context->resources())
      if (kindOf(one.name) != TransportKind::kMemory) there.push_back(one);
    out.names.push_back(std::move(name));
    out.domains.push_back(std::move(context));
  };
  for (const std::string& device : rails.devices) {
    ContextOptions choice = common;
    choice.devices = device;
    auto context = Context::open(ucx, choice);
    if (context) {
      add(device, *std::move(context));
      continue;
    }
    if (!settings.rails.empty()) return std::move(context).error();
    base::log(base::LogLevel::kWarning, "ucx: {} is skipped: {}", device, context.error().text());
  }
  if (settings.rails.empty()) out.near = move::NearRails(out.names);
  if (out.domains.empty()) add("any", std::move(all));
  const auto staged = move::gpuIsStaged([&] {
    return whyGpuIsStaged(static_cast<const Context&>(*out.domains.front()).memoryTypes());
  });
  const std::string set = settingsText(ucx);
  out.description = fmt::format("UCX {} over {}{}{}{}{}{}", ucx.version, listText(there),
                                common.by_messages ? ", by messages" : "", notNear(rails.left_out),
                                staged, set.empty() ? "" : "; ", set);
  return Ok{};
}

// The error if UCX has only memory transports. Over these, an endpoint does not notice that its
// peer is gone.
Error noNetwork(const std::vector<Transport>& resources) {
  Error out{.code = Code::kNotFound,
            .operation = "open ucx",
            .detail = "UCX has no network to use; there is: " + listText(resources),
            .remedy = "see what `ucx_info -d` lists"};
  for (const char* chosen : {"UCX_TLS=", "UCX_NET_DEVICES="})
    if (const std::string set = base::environmentText(chosen); !set.empty())
      out.cause += (out.cause.empty() ? "" : " ") + set;
  if (out.cause.empty()) return out;
  out.cause += " leaves none";
  out.remedy = "unset it, or name a device that `ucx_info -d` lists";
  return out;
}

// The kind of the backend; two ends connect only if their kinds are equal. The kind contains the
// packet sizes, because a packet longer than the receiver's limit would end the receiver's process.
std::string kindOf(const ContextOptions& choice) {
  std::string out = choice.by_messages ? "ucx by messages" : "ucx";
  if (choice.by_messages)
    for (const char* size : {"UCX_TCP_TX_SEG_SIZE", "UCX_TCP_RX_SEG_SIZE"})
      if (const char* const value = std::getenv(size)) out += fmt::format(", {}={}", size, value);
  return out;
}

}  // namespace

Result<Fabric> choose(const Settings& settings) {
  const bool named = namedIn(settings, "ucx");
  if (!named && host::rdmaPorts().empty())
    return notOpenedUnasked("ucx", "this host has no RDMA device");
  VIADUCT_TRY(const UcxLibrary* const ucx, library());
  if (!named && !fitUnasked(ucx->major, ucx->minor))
    return notOpenedUnasked(
        "ucx", fmt::format("UCX {} may end the process if a peer does not answer", ucx->version));
  const bool user_chose = userChose(*ucx, "UCX_TLS");
  ContextOptions choice{.transports = transportsFor(user_chose, false)};
  VIADUCT_TRY(auto all, Context::open(*ucx, choice));
  const bool any_rdma = anyOf(all->resources(), TransportKind::kRdma);
  if (!named && !any_rdma)
    return notOpenedUnasked("ucx", "UCX shows no RDMA transport: " + listText(all->resources()));
  choice.transports = transportsFor(user_chose, any_rdma);
  const bool tcp = anyOf(all->resources(), TransportKind::kTcp) && (user_chose || !any_rdma);
  if (!any_rdma && !tcp) return noNetwork(all->resources());
  choice.by_messages = tcp;
  choice.rdma_only = any_rdma && !tcp;
  VIADUCT_TRY(all, Context::open(*ucx, choice));
  Fabric out{.can = {.name = "ucx",
                     .memory = {MemoryKind::kHost},
                     .rdma = choice.rdma_only,
                     .tcp = !choice.rdma_only,
                     .side_by_side = true,  // each rail has a context
                     .checks_rights = true,
                     .preference = choice.rdma_only ? 21 : 35},
             .kind = kindOf(choice)};
  VIADUCT_CHECK(openRails(*ucx, settings, choice, std::move(all), out));
  return out;
}

}  // namespace viaduct::ucx
