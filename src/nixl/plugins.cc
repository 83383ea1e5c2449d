#include "nixl/plugins.h"

#include <fmt/format.h>
#include <viaduct/settings.h>

#include <algorithm>
#include <array>
#include <cstdint>

#include "base/environment.h"
#include "base/lists.h"
#include "base/text.h"
#include "nixl/status.h"

namespace viaduct::nixl {
namespace {

// Programs pass these parameters. docs/nixl.md lists those with an effect.
constexpr std::string_view kNetwork = "num_threads=0";
constexpr std::string_view kFiles =
    "use_uring use_aio use_posix_aio ios_pool_size kernel_queue_size";
constexpr std::string_view kGds =
    "use_uring use_aio use_posix_aio ios_pool_size kernel_queue_size "
    "batch_pool_size batch_limit max_request_size thread_count";
constexpr std::string_view kObjects =
    "access_key secret_key session_token bucket endpoint_override scheme region "
    "use_virtual_addressing req_checksum resp_checksum ca_bundle crtMinLimit "
    "throughput_target_gbps accelerated type num_threads";
constexpr std::array kPlugins{
    Plugin{"UCX", Memory::kDram, kNetwork}, Plugin{"LIBFABRIC", Memory::kDram, kNetwork},
    Plugin{"POSIX", Memory::kFile, kFiles}, Plugin{"GDS", Memory::kFile, kGds},
    Plugin{"GDS_MT", Memory::kFile, kGds},  Plugin{"OBJ", Memory::kObject, kObjects},
};

// The table "Plugins" of docs/nixl.md lists the same names: change both together.
struct RefusedPlugin {
  std::string_view name, reason;
};
constexpr std::string_view kOtherLibrary =
    "the name means another library; UCX names Viaduct's own network";
constexpr std::array kRefused{
    RefusedPlugin{"HF3FS",
                  "Viaduct has no backend for 3FS; POSIX moves files of its mounted file system"},
    RefusedPlugin{"AZURE_BLOB", "Viaduct has no backend for Azure; OBJ reaches S3 stores"},
    RefusedPlugin{"GPUNETIO", "Viaduct has no transfers that a GPU starts by itself"},
    RefusedPlugin{"GUSLI", "Viaduct has no backend for block devices"},
    RefusedPlugin{
        "INFINIA",
        "Viaduct has no backend for Infinia; OBJ reaches S3 stores, which Infinia offers too"},
    RefusedPlugin{"MOONCAKE", kOtherLibrary},
    RefusedPlugin{"UCCL", kOtherLibrary},
    RefusedPlugin{"UCX_MO", "use UCX, the name of Viaduct's own network, which uses all devices"},
};

std::string valueAt(const Parameters& parameters, std::string_view name) {
  const auto* const found = base::firstWith(parameters, &Parameters::value_type::first, name);
  return found == nullptr ? std::string() : found->second;
}
bool isYes(const std::string& value) { return value == "true" || value == "1"; }

Parameters settingsOfFiles(const Parameters& parameters) {
  Parameters settings;
  if (isYes(valueAt(parameters, "use_aio")) || isYes(valueAt(parameters, "use_posix_aio")))
    settings.emplace_back("VIADUCT_FILE_ENGINE", "threads");
  else if (isYes(valueAt(parameters, "use_uring")))
    settings.emplace_back("VIADUCT_FILE_ENGINE", "auto");
  constexpr std::uint32_t kMostDepth = 1024;
  const auto depth = base::numberIn<std::uint32_t>(valueAt(parameters, "kernel_queue_size"));
  if (depth.value_or(0) != 0)
    settings.emplace_back("VIADUCT_FILE_QUEUE_DEPTH", fmt::to_string(std::min(*depth, kMostDepth)));
  return settings;
}

Parameters settingsOfObjects(const Parameters& parameters) {
  std::string endpoint = valueAt(parameters, "endpoint_override");
  if (endpoint.empty()) endpoint = base::variableText("AWS_ENDPOINT_OVERRIDE");
  if (!endpoint.empty() && endpoint.find("://") == std::string::npos) {
    const std::string scheme = valueAt(parameters, "scheme");
    endpoint = fmt::format("{}://{}", scheme.empty() ? "https" : scheme, endpoint);
  }
  const std::string virtual_style = valueAt(parameters, "use_virtual_addressing");
  Parameters settings{
      {"VIADUCT_OBJECT_ENDPOINT", endpoint},
      {"VIADUCT_OBJECT_REGION", valueAt(parameters, "region")},
      {"VIADUCT_OBJECT_STYLE",
       virtual_style.empty() ? "" : (isYes(virtual_style) ? "virtual" : "path")},
      {"VIADUCT_OBJECT_CA", valueAt(parameters, "ca_bundle")},
      {"AWS_ACCESS_KEY_ID", valueAt(parameters, "access_key")},
      {"AWS_SECRET_ACCESS_KEY", valueAt(parameters, "secret_key")},
      {"AWS_SESSION_TOKEN", valueAt(parameters, "session_token")},
  };
  std::erase_if(settings, [](const auto& one) { return one.second.empty(); });
  return settings;
}

}  // namespace

Parameters Plugin::defaults() const {
  Parameters out;
  for (const std::string_view one : base::wordsOf(parameters)) {
    const auto equals = one.find('=');
    out.emplace_back(one.substr(0, equals),
                     equals == std::string_view::npos ? "" : one.substr(equals + 1));
  }
  return out;
}

std::span<const Plugin> plugins() {
  static const std::vector<Plugin> here = [] {
    const auto built_in = builtInBackends();
    std::vector<Plugin> out;
    for (const Plugin& one : kPlugins)
      if (one.isNetwork() ||
          base::contains(built_in, one.memory == Memory::kFile ? "file" : "object"))
        out.push_back(one);
    return out;
  }();
  return here;
}

const Plugin& pluginOf(std::string_view name) {
  for (const Plugin& one : plugins())
    if (one.name == name) return one;
  const auto* const refused = base::firstWith(kRefused, &RefusedPlugin::name, name);
  std::string names;
  for (const Plugin& one : plugins())
    names += fmt::format("{}{}", names.empty() ? "" : ", ", one.name);
  fail(refused == nullptr ? Outcome::kNotFound : Outcome::kNotSupported,
       fmt::format("no plugin {}: {}; plugins: {} (docs/nixl.md)", name,
                   refused == nullptr ? "the name is unknown" : refused->reason, names));
}

Parameters settingsOf(const Plugin& plugin, const Parameters& parameters) {
  return plugin.memory == Memory::kObject ? settingsOfObjects(parameters)
                                          : settingsOfFiles(parameters);
}

std::string bucketOf(const Plugin& plugin, const Parameters& parameters) {
  if (plugin.memory != Memory::kObject) return {};
  const std::string given = valueAt(parameters, "bucket");
  return given.empty() ? base::variableText("AWS_DEFAULT_BUCKET") : given;
}

}  // namespace viaduct::nixl
