#include "viaduct/manifest_variables.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <string_view>
#include <utility>

#include "base/text.h"
#include "viaduct/bench_values.h"

namespace viaduct::app {
namespace {

using Words = std::vector<std::string>;

// Returns the level for one of NIXL's names. Viaduct has neither trace nor fatal.
std::optional<base::LogLevel> levelNamed(const std::string& theirs) {
  using enum base::LogLevel;
  constexpr std::array<std::pair<std::string_view, base::LogLevel>, 7> kLevels{
      {{"TRACE", kDebug},
       {"DEBUG", kDebug},
       {"INFO", kInfo},
       {"WARN", kWarning},
       {"WARNING", kWarning},
       {"ERROR", kError},
       {"FATAL", kError}}};
  for (const auto& [name, ours] : kLevels)
    if (base::upper(theirs) == name) return ours;
  return std::nullopt;
}

class VariableFlags {
 public:
  VariableFlags(const Words& typed, std::span<const FlagName> known, ManifestWords& out)
      : known_(known), typed_(readFlags(typed, known).given), out_(out) {}

  bool has(std::string_view flag) const {
    return std::any_of(typed_.begin(), typed_.end(),
                       [&](const Given& one) { return one.name == flag; });
  }
  bool meetsAtEtcd() const {
    if (has("meet") || has("local_workers")) return false;
    for (const Given& one : typed_)
      if (one.name == "runtime_type") return base::upper(one.text) == "ETCD";
    return true;
  }
  // True if the typed backend, or otherwise the backend named `variable`, is the one that `alias`
  // stands for.
  bool measures(std::string_view alias, const std::string& variable) const {
    std::string named = variable;
    for (const Given& one : typed_)
      if (one.name == "backend") named = one.text;
    return backendNamed(named) == backendNamed(std::string(alias));
  }
  // Adds all flags of the variable. Adds none if the user has typed one of them, or the command
  // lacks one.
  void take(const std::string& variable, const Words& flags) {
    for (std::size_t i = 0; i < flags.size(); i += 2) {
      const std::string name = flags[i].substr(2);
      if (has(name) || std::ranges::find(known_, name, &FlagName::name) == known_.end()) return;
    }
    // An address may hold a password.
    const bool secret = flags[0].find("endpoint") != std::string::npos;
    out_.said.push_back(fmt::format("{} is set: taken as {}", variable,
                                    secret ? flags[0] : fmt::format("{}", fmt::join(flags, " "))));
    out_.words.insert(out_.words.end(), flags.begin(), flags.end());
  }

 private:
  std::span<const FlagName> known_;
  std::vector<Given> typed_;
  ManifestWords& out_;
};

// For each variable, a command has only one of the two flags.
constexpr std::array<std::pair<const char*, const char*>, 4> kOfStore{
    {{"AWS_DEFAULT_BUCKET", "--object_bucket"},
     {"AWS_DEFAULT_BUCKET", "--obj_bucket_name"},
     {"AWS_ENDPOINT_OVERRIDE", "--object_endpoint"},
     {"AWS_ENDPOINT_OVERRIDE", "--obj_endpoint_override"}}};

// The segment type RDMA means host memory that is moved over RDMA.
Words flagsOfSegment(const std::string& value) {
  if (base::upper(value) == "RDMA") return {"--target_seg_type", "DRAM", "--require", "rdma"};
  return {"--target_seg_type", value};
}

}  // namespace

ManifestWords withManifestVariables(
    Words words, std::span<const FlagName> known,
    const std::function<std::optional<std::string>(const char*)>& variable) {
  ManifestWords out;
  VariableFlags flags(words, known, out);
  const auto value_of = [&](const char* name) { return variable(name).value_or(""); };
  if (const std::string backend = value_of("NIXL_BACKEND"); !backend.empty())
    flags.take("NIXL_BACKEND", {"--backend", backend});
  // "native" is a worker without NIXL, as all workers of viaduct are.
  if (const std::string worker = value_of("NIXL_WORKER_TYPE"); !worker.empty())
    flags.take("NIXL_WORKER_TYPE",
               {"--worker_type", base::upper(worker) == "NATIVE" ? "nixl" : worker});
  if (const std::string segment = value_of("NIXL_TARGET_SEG_TYPE"); !segment.empty())
    flags.take("NIXL_TARGET_SEG_TYPE", flagsOfSegment(segment));
  const std::string etcd = value_of("ETCD_ENDPOINTS");
  if (!etcd.empty() && value_of("VIADUCT_MEET").empty() &&
      value_of("NIXL_ETCD_ENDPOINTS").empty() && flags.meetsAtEtcd())
    flags.take("ETCD_ENDPOINTS", {"--etcd_endpoints", etcd});
  if (flags.measures("OBJ", value_of("NIXL_BACKEND")))
    for (const auto& [name, flag] : kOfStore)
      if (const std::string value = value_of(name); !value.empty()) flags.take(name, {flag, value});
  if (const std::string level = value_of("NIXL_LOG_LEVEL");
      !level.empty() && value_of("VIADUCT_LOG").empty())
    out.log_level = levelNamed(level);
  if (variable("ETCD_CPP_API_DISABLE_URI_VALIDATION"))
    out.said.emplace_back(
        "ETCD_CPP_API_DISABLE_URI_VALIDATION: not needed; names are looked up again until etcd "
        "answers");
  out.words.insert(out.words.end(), std::make_move_iterator(words.begin()),
                   std::make_move_iterator(words.end()));
  return out;
}

}  // namespace viaduct::app
