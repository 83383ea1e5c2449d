// Turns nixlbench's options into those of `viaduct bench`, and prints them as nixlbench does.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/sizes.h"
#include "base/text.h"
#include "meet/groups/serve.h"
#include "meet/place.h"
#include "viaduct/bench_storage.h"
#include "viaduct/bench_values.h"
#include "viaduct/nixlbench.h"

namespace viaduct::app {
namespace {

constexpr std::uint64_t kUsualBuffer = 8192 * base::kMiB;
constexpr std::uint32_t kMostDepth = 1024;
constexpr auto kUsualEtcd = "http://localhost:2379";
constexpr auto kUsualRegion = "eu-central-1";

template <class Number>
void addRange(const char* what, Number first, Number last, std::vector<Number>& into,
              std::vector<Error>& found) {
  if (first > last)
    found.push_back(badFlag(fmt::format("--start_{0} and --max_{0}", what),
                            fmt::format("{} is above {}", first, last)));
  if (into.empty()) into = doubled(first, last);
}

void addCounts(const NixlbenchOptions& o, BenchOptions& into) {
  const bool counted = o.has("num_iter") || !o.has("duration");
  if (!o.has("iterations") && counted) into.counts.timed = o.num_iter;
  if (o.has("warmup_iter") || !o.has("warmup")) into.counts.warm = o.warmup_iter;
}

// Returns the flags that name a meeting place, one for each place.
std::vector<std::string> placesOf(const NixlbenchOptions& o) {
  const bool asio = base::sameWord(o.runtime_type, "ASIO"), runtime = o.has("runtime_type");
  std::vector<std::string> out;
  if (o.has("local_workers") && !o.has("meet")) out.emplace_back("--local_workers");
  if (o.has("meet")) out.emplace_back("--meet");
  if (o.has("etcd_endpoints")) out.emplace_back("--etcd_endpoints");
  if (runtime && (asio || !o.has("etcd_endpoints"))) {
    out.emplace_back("--runtime_type");
  } else if (!o.has("local_workers")) {
    for (const char* flag : {"asio_address", "asio_port"})
      if (o.has(flag)) out.push_back(fmt::format("--{}", flag));
  }
  return out;
}

void checkPlaces(const NixlbenchOptions& o, std::vector<Error>& found) {
  const std::vector<std::string> places = placesOf(o);
  if (places.size() < 2 || places.front() == "--asio_address") return;
  found.push_back(badFlag(
      fmt::format("{} and {}", places[0], places[1]),
      places[0] == "--local_workers"
          ? "--local_workers runs all workers here; the other flag meets workers of other machines"
          : "both set the meeting place",
      "drop one of the two"));
}

bool isEtcd(const std::string& where) {
  const auto chosen = meet::choosePlace(where);
  return chosen && chosen->entry->name == "etcd";
}

void meetAsTheyDo(const NixlbenchOptions& o, const Settings& settings, MeetingOptions& into,
                  std::vector<Error>& found) {
  checkPlaces(o, found);
  if (into.where.empty() && base::sameWord(o.runtime_type, "ASIO")) {
    into.where = fmt::format("embedded:{}:{}", o.asio_address, o.asio_port);
  } else if (into.where.empty() && !o.etcd_endpoints.empty()) {
    into.where = "etcd:" + o.etcd_endpoints;
  } else if (into.where.empty() && o.local_workers == 0 &&
             (o.has("runtime_type") || !std::ranges::any_of(o.backends, isStorage))) {
    // A run with storage needs no meeting place, because it is one process by default.
    into.where = settings.meet.empty() ? kUsualEtcd : settings.meet;
  }
  for (const char* flag : {"etcd_user", "etcd_password", "etcd_ca", "etcd_cert", "etcd_key"})
    if (o.has(flag) && !isEtcd(into.where))
      found.push_back(badFlag(spelled(flag, '_'), "the workers do not meet at an etcd",
                              "give --etcd_endpoints, too"));
}

Settings withEtcdKeys(const NixlbenchOptions& o, Settings settings) {
  const auto take = [](const std::string& flag, std::string& setting) {
    if (!flag.empty()) setting = flag;
  };
  take(o.etcd_user, settings.meet_user);
  take(o.etcd_password, settings.meet_password);
  take(o.etcd_ca, settings.meet_ca);
  take(o.etcd_cert, settings.meet_certificate);
  take(o.etcd_key, settings.meet_key);
  return settings;
}

bool isSet(const Settings& settings, std::string_view variable) {
  const auto at = settings.others.find(variable);
  return at != settings.others.end() && !at->second.empty();
}

void setFiles(const NixlbenchOptions& o, const Settings& settings, StorageOptions& into) {
  // nixlbench reads and writes through the page cache by default.
  if (!into.direct && !isSet(settings, "VIADUCT_FILE_DIRECT")) into.direct = false;
  auto& [variables, remarks] = into.of_files;
  const std::uint32_t depth = std::min(o.kernel_queue_size, kMostDepth);
  if (o.has("posix_kernel_queue_size"))
    variables.push_back(fmt::format("VIADUCT_FILE_QUEUE_DEPTH={}", depth));
  if (depth != o.kernel_queue_size)
    remarks.push_back(fmt::format("--posix_kernel_queue_size: {}, the highest value", kMostDepth));
  remarks.emplace_back(
      "each --posix_api_type uses the same engine: io_uring, or threads if the system refuses "
      "io_uring");
  if (o.has("posix_ios_pool_size"))
    remarks.emplace_back("--posix_ios_pool_size has no effect: no pool can run out");
}

void setObjects(const NixlbenchOptions& o, const Settings& settings, StorageOptions& into) {
  if (!into.endpoint.empty() && into.endpoint.find("://") == std::string::npos)
    into.endpoint = fmt::format("{}://{}", o.obj_scheme, into.endpoint);
  auto& [variables, remarks] = into.of_objects;
  if (!o.has("obj_region") && !isSet(settings, "VIADUCT_OBJECT_REGION"))
    variables.push_back(fmt::format("VIADUCT_OBJECT_REGION={}", kUsualRegion));
  if (!o.has("obj_use_virtual_addressing") && !isSet(settings, "VIADUCT_OBJECT_STYLE"))
    variables.emplace_back("VIADUCT_OBJECT_STYLE=path");
  if (o.has("obj_access_key") || o.has("obj_secret_key") || o.has("obj_session_token"))
    remarks.emplace_back(
        "ps shows the keys of this command line; AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY stay "
        "hidden");
  for (const char* flag : {"obj_req_checksum", "obj_crt_min_limit", "obj_accelerated_type"})
    if (o.has(flag)) remarks.push_back(fmt::format("--{} has no effect", flag));
}

// Adds the meeting place in nixlbench's words. Its ASIO runtime is an address and a port too.
void addPlace(const BenchPlan& plan, std::vector<measure::Option>& flags) {
  const auto& place = plan.run.place;
  if (const auto address = place ? meet::embeddedAddress(*place) : std::nullopt) {
    const auto colon = address->rfind(':');
    flags.push_back({"runtime_type", "ASIO"});
    flags.push_back({"asio_address", address->substr(0, colon)});
    flags.push_back({"asio_port", address->substr(colon + 1)});
    return;
  }
  const char* const none = plan.run.spec.layout.stored() ? "disabled (storage backend)"
                                                         : "disabled (all workers run here)";
  const auto chosen = place ? meet::choosePlace(place->where) : Error{};
  flags.push_back({"runtime_type", "ETCD"});
  flags.push_back({"etcd_endpoints", chosen ? chosen->where : none});
}

// Returns the memory of one process, without that of checks. 0 stands for memory that does not
// suffice; the plan has refused such a run.
std::uint64_t processMemory(const measure::Spec& spec) {
  const auto bytes = deviceBytes(spec);
  return bytes ? processBytes(spec, {.initiator = bytes->initiator}, 0) : 0;
}

// Returns the number of timed and of warm-up transfers, or their duration.
std::pair<std::string, std::string> lengthOf(const BenchOptions& o, const measure::Spec& spec) {
  std::string timed = base::formatDuration(spec.duration), warm = base::formatDuration(spec.warmup);
  if (o.iterations != 0)
    timed = fmt::to_string(o.iterations);
  else if (o.counts.timed != 0)
    timed = fmt::to_string(roundedForThreads(o, o.counts.timed));
  if (o.counts.warm != 0 || o.has("warmup_iter"))
    warm = fmt::to_string(roundedForThreads(o, o.counts.warm));
  return {std::move(timed), std::move(warm)};
}

}  // namespace

std::vector<measure::Option> bannerFlags(const BenchPlan& plan, const BenchOptions& options) {
  const measure::Spec& spec = plan.run.spec;
  const auto by_block = [](const auto& a, const auto& b) { return a.block_bytes < b.block_bytes; };
  const auto by_batch = [](const auto& a, const auto& b) { return a.batch < b.batch; };
  const auto [least, most] = std::minmax_element(spec.rows.begin(), spec.rows.end(), by_block);
  const auto [few, many] = std::minmax_element(spec.rows.begin(), spec.rows.end(), by_batch);
  const auto yes = [](bool value) { return std::string(value ? "1" : "0"); };
  const auto number = [](std::uint64_t value) { return fmt::to_string(value); };
  const auto [timed, warm] = lengthOf(options, spec);
  const auto asked = [&](const char* flag) {
    return yes(parseYesNo(options.textOf(flag, "no")).value());
  };
  std::vector<measure::Option> flags{
      {"backend", options.textOf("backend", options.backends.empty() ? least->backend
                                                                     : options.backends.front())},
      {"enable_pt", asked("enable_pt")},
      {"progress_threads", options.textOf("progress_threads", "0")},
      {"device_list", options.textOf("device_list", "all")},
      {"recreate_xfer", yes(spec.recreate || spec.reregister)},
      {"reregister_mem", yes(spec.reregister)},
      {"prepared_xfer", asked("prepared_xfer")},
      {"pipeline_depth", number(spec.depth)},
      {"use_hugepages", yes(spec.huge_pages)},
      {"initiator_seg_type", spec.initiator_gpu ? "VRAM" : "DRAM"},
      {"target_seg_type", options.target_seg_type},
      {"scheme", schemeName(spec.layout.scheme)},
      {"mode", modeName(spec.layout.mode)},
      {"op_type", spec.rows.front().op == OpKind::kRead ? "READ" : "WRITE"},
      {"check_consistency", asked("check_consistency")},
      {"total_buffer_size", number(processMemory(spec))},
      {"num_initiator_dev", number(spec.layout.initiators)},
      {"num_target_dev", number(options.spec.layout.targets)},
      {"start_block_size", number(least->block_bytes)},
      {"max_block_size", number(most->block_bytes)},
      {"start_batch_size", number(few->batch)},
      {"max_batch_size", number(many->batch)},
      {"num_iter", timed},
      {"warmup_iter", warm},
      {"large_blk_iter_ftr", number(options.counts.divisor)},
      {"num_threads", number(spec.threads)}};
  addPlace(plan, flags);
  if (spec.layout.stored())
    for (measure::Option& flag : storageBanner(options, spec.storage, plan.run.settings))
      flags.push_back(std::move(flag));
  return flags;
}

PlanOrProblems planNixlbench(const NixlbenchOptions& o, const Settings& environment) {
  const Settings settings = withEtcdKeys(o, environment);
  BenchOptions bench = o;
  std::vector<Error> found;
  addRange("block_size", o.start_block_size, o.max_block_size, bench.block_sizes, found);
  addRange("batch_size", o.start_batch_size, o.max_batch_size, bench.batches, found);
  if (o.check_consistency && o.has("verify") && o.spec.verify != measure::Verified::kFull)
    found.push_back(badFlag("--check_consistency and --verify", "they ask for different checks"));
  if (o.check_consistency && !o.has("verify")) bench.spec.verify = measure::Verified::kFull;
  if (bench.backends.empty()) bench.backends = {"UCX"};
  if (bench.spec.buffer_bytes == 0) bench.spec.buffer_bytes = kUsualBuffer;
  if (!bench.out.form) bench.out.form = OutputForm::kNixlbench;
  addCounts(o, bench);
  meetAsTheyDo(o, settings, bench.meeting, found);
  setFiles(o, settings, bench.storage);
  setObjects(o, settings, bench.storage);
  return planBenchAfter(std::move(found), bench, settings);
}

}  // namespace viaduct::app
