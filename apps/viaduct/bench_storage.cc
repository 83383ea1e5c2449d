#include "viaduct/bench_storage.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <iterator>
#include <utility>

#include "base/text.h"
#include "viaduct/flags.h"

namespace viaduct::app {
namespace {

constexpr auto kDirect = "VIADUCT_FILE_DIRECT", kDepth = "VIADUCT_FILE_QUEUE_DEPTH";
constexpr auto kRegion = "VIADUCT_OBJECT_REGION", kStyle = "VIADUCT_OBJECT_STYLE";
constexpr auto kEndpoint = "VIADUCT_OBJECT_ENDPOINT", kAuthority = "VIADUCT_OBJECT_CA";

// Flags without a meaning for a run without targets.
constexpr std::array<std::string_view, 4> kOfTargets{"num_target_dev", "scheme", "device_list",
                                                     "target_seg_type"};

bool isOfObjects(std::string_view flag) { return flag.starts_with("obj"); }
bool isOfStorage(std::string_view flag) {
  return isOfObjects(flag) || flag.starts_with("posix_") || isStorageFlag(flag);
}

// Returns the given flags that have no effect with this kind of storage.
std::vector<std::string> ignoredFlags(const BenchOptions& o, std::optional<MemoryKind> kind) {
  std::vector<std::string> out = o.ignored;
  for (const auto& [flag, value] : o.given) {
    const bool used = kind && isOfObjects(flag) == (*kind == MemoryKind::kObject);
    if (isOfStorage(flag) && !used) out.push_back(flag);
  }
  for (const std::string_view flag : kOfTargets)
    if (kind && o.has(flag)) out.emplace_back(flag);
  std::ranges::sort(out);
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

std::string valueOf(const Settings& settings, std::string_view variable) {
  const auto at = settings.others.find(variable);
  return at == settings.others.end() ? std::string() : at->second;
}

void setVariable(StoragePlan& plan, std::string_view variable, std::string_view value) {
  plan.settings.push_back(fmt::format("{}={}", variable, value));
}

// Refuses flags that need a second member, because a run with storage has none.
Status fitsStorage(const BenchOptions& o) {
  constexpr std::array<std::string_view, 4> kNeedTargets{"latency", "bidirectional",
                                                         "reregister_mem", "background"};
  const std::array<bool, 4> given{o.spec.ping_pong, o.spec.bidirectional, o.spec.reregister,
                                  o.spec.background != 0};
  for (std::size_t i = 0; i < given.size(); ++i)
    if (given[i])
      return badFlag(fmt::format("--{} and --backend", kNeedTargets[i]),
                     "storage is no member that could answer",
                     "leave the flag out; the columns p50 and p99 are latencies of transfers");
  return Ok{};
}

void addDirect(const BenchOptions& o, const Settings& settings, StoragePlan& plan) {
  std::string direct = valueOf(settings, kDirect);
  if (o.storage.direct) direct = *o.storage.direct ? "on" : "off";
  if (!direct.empty()) setVariable(plan, kDirect, direct);
  plan.choice.cached = direct == "off";
}

void addAll(const AgentVariables& flags, StoragePlan& plan) {
  std::ranges::copy(flags.variables, std::back_inserter(plan.settings));
  std::ranges::copy(flags.remarks, std::back_inserter(plan.remarks));
}

// Checks the names of files, and sets how many files there are.
Status useNames(const BenchOptions& o, measure::StorageChoice& choice) {
  if (o.has("num_files") && choice.names.size() != choice.files)
    return badFlag("--num_files and --filenames",
                   fmt::format("{} files, and {} names", choice.files, choice.names.size()),
                   "drop --num_files");
  choice.files = static_cast<std::uint32_t>(choice.names.size());
  for (const std::string& name : choice.names)
    if (std::count(choice.names.begin(), choice.names.end(), name) > 1)
      return badFlag("--filenames", fmt::format("{} is named twice", name));
  if (std::max(o.spec.layout.initiators, o.local_workers) > 1)
    return badFlag("--filenames and --num_initiator_dev", "each process has files of its own",
                   "use --filepath and --num_files");
  return Ok{};
}

Status addFiles(const BenchOptions& o, const Settings& settings, StoragePlan& plan) {
  measure::StorageChoice& choice = plan.choice;
  choice.overwrite = o.storage.overwrite;
  // An absolute name stays as it is.
  for (const std::string& name : o.storage.filenames)
    choice.names.push_back((std::filesystem::path(choice.place) / name).string());
  if (choice.place.empty() && choice.names.empty())
    return badFlag("--filepath", "the run needs a folder for its files",
                   "give --filepath FOLDER, or --filenames");
  if (!choice.names.empty()) VIADUCT_CHECK(useNames(o, choice));
  for (const std::string& name : choice.names)
    if (std::error_code unknown; !std::filesystem::exists(name, unknown) && !unknown)
      plan.remarks.push_back(
          fmt::format("{} does not exist; the run uses a file without a name in its place", name));
  const std::string asked = base::upper(o.textOf("backend", ""));
  if (asked == "GDS" || asked == "GDS_MT")
    plan.remarks.push_back(fmt::format(
        "{}: GPUDirect Storage is not used; memory of GPUs is staged through host memory", asked));
  addDirect(o, settings, plan);
  addAll(o.storage.of_files, plan);
  return Ok{};
}

Status addObjects(const BenchOptions& o, const Settings& settings, StoragePlan& plan) {
  plan.choice.place = o.storage.bucket;
  plan.choice.files = 1;
  if (o.storage.bucket.empty()) {
    const char* const flag = o.command == "nixlbench" ? "--obj_bucket_name" : "--object_bucket";
    return badFlag(flag, "the run needs a bucket for its objects",
                   fmt::format("give {} NAME", flag));
  }
  if (!o.storage.endpoint.empty()) setVariable(plan, kEndpoint, o.storage.endpoint);
  // The objects of the run are deleted within the grace time.
  if (settings.grace == Settings{}.grace) setVariable(plan, "VIADUCT_GRACE", "10s");
  addAll(o.storage.of_objects, plan);
  return Ok{};
}

// Returns the value of a setting as the agents use it.
std::string shown(const Settings& settings, std::string_view variable) {
  for (const SettingRow& row : settingRows())
    if (row.variable == variable && row.show != nullptr) return row.show(settings);
  return {};
}

}  // namespace

std::vector<measure::Option> storageBanner(const BenchOptions& o,
                                           const measure::StorageChoice& choice,
                                           const Settings& settings) {
  if (choice.kind == MemoryKind::kFile)
    return {{"posix_api_type", o.textOf("posix_api_type", "AIO")},
            {"posix_ios_pool_size", o.textOf("posix_ios_pool_size", "65536")},
            {"posix_kernel_queue_size", shown(settings, kDepth)},
            {"filepath", choice.place},
            {"filenames", fmt::format("{}", fmt::join(o.storage.filenames, ","))},
            {"num_files", fmt::to_string(choice.files)},
            {"storage_enable_direct", choice.cached ? "0" : "1"}};
  const std::string endpoint = valueOf(settings, kEndpoint);
  const bool plain = endpoint.starts_with("http://");
  return {{"obj_bucket_name", choice.place},
          {"obj_scheme", plain ? "http" : "https"},
          {"obj_region", shown(settings, kRegion)},
          {"obj_use_virtual_addressing", shown(settings, kStyle) == "virtual" ? "1" : "0"},
          {"obj_endpoint_override", endpoint},
          {"obj_req_checksum", o.textOf("obj_req_checksum", "supported")},
          {"obj_ca_bundle", valueOf(settings, kAuthority)}};
}

Result<StoragePlan> storageOf(const BenchOptions& o, std::optional<MemoryKind> kind,
                              const Settings& settings) {
  StoragePlan plan;
  if (const auto ignored = ignoredFlags(o, kind); !ignored.empty())
    plan.remarks.push_back(fmt::format("ignored, because this backend does not use them: --{}",
                                       fmt::join(ignored, ", --")));
  if (!kind) return plan;
  plan.choice = o.spec.storage;
  plan.choice.kind = *kind;
  VIADUCT_CHECK(fitsStorage(o));
  VIADUCT_CHECK(*kind == MemoryKind::kObject ? addObjects(o, settings, plan)
                                             : addFiles(o, settings, plan));
  return plan;
}

}  // namespace viaduct::app
