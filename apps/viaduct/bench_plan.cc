#include "viaduct/bench_plan.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <viaduct/backend.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <iterator>
#include <utility>

#include "base/sizes.h"
#include "base/text.h"
#include "measure/load/collective.h"
#include "measure/load/machine.h"
#include "measure/load/storage.h"
#include "meet/groups/group.h"
#include "viaduct/against_settings.h"
#include "viaduct/bench_kv.h"
#include "viaduct/bench_place.h"
#include "viaduct/bench_storage.h"
#include "viaduct/bench_values.h"
#include "viaduct/flags.h"
#include "viaduct/ranks.h"

namespace viaduct::app {
namespace {

using measure::Layout;
using measure::Mode;
using measure::Scheme;
using measure::Spec;
using measure::Workload;

constexpr std::string_view kVram = "VRAM";
constexpr std::uint64_t kNixlbenchBuffer = 8192 * base::kMiB;
// The backends of nixlbench that viaduct can lack: why, and what to use. No reason: it is left out
// of this build.
struct NixlBackend {
  std::string_view name, why = {}, remedy = {};
};
constexpr std::string_view kOtherLibrary = "it is a transfer library of its own";
constexpr std::string_view kUseUcx = "use UCX or tcp";
constexpr std::string_view kUseObj = "use OBJ, if the store speaks S3";
constexpr std::array kNixlBackends{
    NixlBackend{"UCX"},
    NixlBackend{"LIBFABRIC"},
    NixlBackend{"POSIX"},
    NixlBackend{"OBJ"},
    NixlBackend{"GPUNETIO", "GPU kernels start its transfers, and this version has none", kUseUcx},
    NixlBackend{"Mooncake", kOtherLibrary, kUseUcx},
    NixlBackend{"UCCL", kOtherLibrary, kUseUcx},
    NixlBackend{"HF3FS", "it needs the client library of 3FS",
                "use POSIX with a --filepath where 3FS is mounted"},
    NixlBackend{"GUSLI", "it needs the library of GUSLI",
                "use POSIX, with the block device in --filenames"},
    NixlBackend{"AZURE_BLOB", "this version speaks S3 only", kUseObj},
    NixlBackend{"INFINIA", "it needs the client library of Infinia", kUseObj},
};

Error notBuiltIn(const std::string& name, bool asked) {
  const auto nixl = std::find_if(kNixlBackends.begin(), kNixlBackends.end(),
                                 [&](const auto& one) { return base::sameWord(one.name, name); });
  const bool known = nixl != kNixlBackends.end();
  Error out{.code = Code::kUnsupported,
            .operation = "--backend",
            .detail = fmt::format("{}{} is {}", name, asked ? "" : ", the default of nixlbench,",
                                  known ? "not built in" : "not a backend"),
            .remedy = fmt::format("choose one of {}, or for storage one of {}",
                                  fmt::join(offeredBackends(), ", "),
                                  fmt::join(storageBackends(), ", "))};
  if (!known || nixl->why.empty()) return out;
  out.detail += fmt::format(": {}", nixl->why);
  out.remedy = nixl->remedy;
  return out;
}

bool movesGpuMemory(const BenchOptions& o) {
  return o.initiator_seg_type == kVram || o.target_seg_type == kVram;
}

// Returns the backends that pin memory of GPUs.
std::vector<std::string> gpuBackends() {
  std::vector<std::string> out;
  for (const std::string_view name : builtInBackends())
    if (backendFacts(name)->gpus) out.emplace_back(name);
  return out;
}

// Returns the backends of --backend, else those of the variable that have no storage. nixlbench has
// a default of its own.
std::vector<std::string> wantedBackends(const BenchOptions& o, const Settings& settings) {
  if (o.has("backend")) return o.backends;
  if (o.as_nixlbench) return {"UCX"};
  std::vector<std::string> listed = settings.backends;
  std::erase_if(listed, [](const std::string& name) {
    const BackendFacts* const facts = backendFacts(name);
    return facts != nullptr && facts->storage;
  });
  if (!listed.empty()) return listed;
  // Between host memory and a GPU of another process these backends are only stages of the others.
  const bool between_gpus = o.initiator_seg_type == kVram && o.target_seg_type == kVram;
  std::vector<std::string> usual = between_gpus ? gpuBackends() : std::vector<std::string>{};
  for (const BackendFacts& backend : backendFacts())
    if (backend.usual) usual.emplace_back(backend.name);
  return usual;
}

Result<std::vector<std::string>> backendsOf(const BenchOptions& o, const Settings& settings) {
  const std::vector<std::string_view> known = builtInBackends();
  std::vector<std::string> out;
  for (const std::string& name : wantedBackends(o, settings)) {
    const std::string ours = backendNamed(name);
    const auto same = [&](std::string_view one) { return base::sameWord(one, ours); };
    const auto at = std::find_if(known.begin(), known.end(), same);
    if (at != known.end() && std::find(out.begin(), out.end(), *at) != out.end())
      return badFlag("--backend", fmt::format("{} is named twice", name));
    if (at == known.end()) {
      Error error = notBuiltIn(name, o.has("backend") || !o.as_nixlbench);
      if (!o.has("backend") && !o.as_nixlbench) error.operation = "VIADUCT_BACKENDS";
      return error;
    }
    out.emplace_back(*at);
  }
  return out;
}

// Returns the kind of storage that the backends reach, or nothing for backends between members.
Result<std::optional<MemoryKind>> storageKind(const std::vector<std::string>& backends) {
  std::optional<MemoryKind> found;
  for (const std::string& name : backends)
    if (const auto& kind = backendFacts(name)->storage) found = kind;
  if (!found || backends.size() == 1) return found;
  return badFlag("--backend",
                 fmt::format("{} differ in what they reach: files, objects or members",
                             fmt::join(backends, " and ")),
                 "measure each backend of storage in a run of its own");
}

std::vector<std::uint64_t> doubled(std::uint64_t first, std::uint64_t last) {
  std::vector<std::uint64_t> out;
  for (std::uint64_t size = first; size <= last; size *= 2) out.push_back(size);
  return out;
}

std::uint64_t roundedUp(std::uint64_t count, std::uint64_t to) {
  return (count + to - 1) / to * to;
}

// Rounds a number of transfers as nixlbench does, over all threads.
std::uint64_t roundedForThreads(const BenchOptions& o, std::uint64_t count) {
  return roundedUp(count, o.spec.threads * o.large_blk_iter_ftr);
}

// Returns the number of transfers of each thread for timing or warm-up, as nixlbench computes it.
std::uint64_t perThread(const BenchOptions& o, std::uint64_t count, std::uint64_t block) {
  const std::uint64_t rounded = roundedForThreads(o, count);
  const std::uint64_t all = block > base::kMiB ? rounded / o.large_blk_iter_ftr : rounded;
  return std::max<std::uint64_t>(all / o.spec.threads, 1);
}

bool countsTimed(const BenchOptions& o) {
  return o.has("num_iter") || (o.as_nixlbench && !o.has("duration"));
}
bool countsWarm(const BenchOptions& o) {
  return o.has("warmup_iter") || (o.as_nixlbench && !o.has("warmup"));
}

void setIterations(const BenchOptions& o, Workload& row) {
  if (o.has("iterations"))
    row.iterations = std::max<std::uint64_t>(o.iterations / o.spec.threads, 1);
  else if (countsTimed(o))
    row.iterations = perThread(o, o.num_iter, row.block_bytes);
  if (countsWarm(o) && o.warmup_iter != 0)
    row.warm_iterations = perThread(o, o.warmup_iter, row.block_bytes);
}

std::vector<std::uint64_t> batchesOf(const BenchOptions& o, const Layout& layout,
                                     std::uint64_t block) {
  if (layout.pattern()) return {piecesOf(layout.scheme, layout.initiators).moved};
  if (o.has("batch")) return {o.batch};
  if (o.as_nixlbench || o.has("start_batch_size") || o.has("max_batch_size"))
    return doubled(o.start_batch_size, o.max_batch_size);
  return {measure::usualBatch(block)};
}

measure::Verified verifyOf(const BenchOptions& o) {
  if (o.has("verify")) return o.verify;
  return o.check_consistency ? measure::Verified::kFull : measure::Verified::kSampled;
}

std::uint64_t workingSetOf(const BenchOptions& o) {
  if (o.working_set != 0) return o.working_set;
  if (!o.cold) return 0;
  return o.spec.buffer_bytes != 0 || o.as_nixlbench ? ~std::uint64_t{0} / 2 : measure::coldBytes();
}

Spec specOf(const BenchOptions& o, const Layout& layout, std::vector<Workload> rows) {
  Spec spec = o.spec;
  spec.layout = layout;
  spec.rows = std::move(rows);
  spec.working_set = workingSetOf(o);
  if (o.has("kv")) spec.repeat = 1;  // trials are rows of their own
  spec.verify = verifyOf(o);
  if (spec.reregister) spec.memory = measure::MemoryChoice::kMalloc;
  if (o.as_nixlbench && spec.buffer_bytes == 0) spec.buffer_bytes = kNixlbenchBuffer;
  if (o.initiator_seg_type == kVram) spec.initiator_gpu = 0;
  if (o.target_seg_type == kVram && !layout.stored()) spec.target_gpu = 0;
  if (o.has("warmup")) spec.warmup = o.warmup;
  if (o.has("duration")) spec.duration = o.duration;
  setTraceTimes(spec);
  return spec;
}

OutputForm outputOf(const BenchOptions& o) {
  return o.output.value_or(o.as_nixlbench && !o.has("pattern") ? OutputForm::kNixlbench
                                                               : OutputForm::kTable);
}

// Removes the directory from the agents' settings. The agents find each other through their group,
// and published names could collide with those of the next run.
void findNobodyByName(Settings& settings) {
  const Settings usual;
  settings.meet = usual.meet;
  settings.name_space = usual.name_space;
  settings.meet_user = usual.meet_user;
  settings.meet_password = usual.meet_password;
  settings.meet_ca = usual.meet_ca;
  settings.meet_certificate = usual.meet_certificate;
  settings.meet_key = usual.meet_key;
}

template <class T>
std::optional<T> take(Result<T> result, std::vector<Error>& problems) {
  if (result) return *std::move(result);
  problems.push_back(std::move(result).error());
  return std::nullopt;
}

bool namesDevices(const BenchOptions& o) {
  return o.has("device_list") && o.device_list != std::vector<std::string>{"all"};
}

// `alone` is true if all workers run here. On several hosts an agent waits for its devices instead,
// because a pod may get them a little later.
void checkDevices(const BenchOptions& o, const Settings& settings, bool alone,
                  std::vector<Error>& problems) {
  if (movesGpuMemory(o) && gpuBackends().empty())
    problems.push_back(badFlag("VRAM", "this build has no backend for GPU memory", "use DRAM"));
  if (!alone) return;
  auto there = measure::devicesExist(namesDevices(o) ? o.device_list : settings.rails);
  if (there) return;
  Error absent = std::move(there).error();
  if (!namesDevices(o)) absent.operation = "VIADUCT_RAILS";
  problems.push_back(std::move(absent));
}

Result<Layout> patternLayout(const BenchOptions& o, bool stored) {
  if (stored)
    return badFlag("--pattern and --backend", "storage is no member that could send",
                   "name a backend between members");
  if (o.members != 0 && o.local_workers != 0 && o.members != o.local_workers)
    return badFlag("--members and --local_workers",
                   fmt::format("{} members are not {} workers", o.members, o.local_workers),
                   "give one of the two");
  Layout layout = o.spec.layout;
  const std::uint32_t given = std::max(o.members, o.local_workers);
  const bool matrix = layout.scheme == Scheme::kMatrix;
  const std::uint32_t usual = matrix ? layout.matrix.members : 2;
  layout.initiators = layout.targets = given == 0 ? usual : given;
  if (matrix && layout.initiators != usual)
    return badFlag("--pattern",
                   fmt::format("{} has {} members, and the run has {}", o.textOf("pattern", "FILE"),
                               usual, layout.initiators),
                   fmt::format("give --members {}, or another file", usual));
  if (layout.initiators > meet::kMaxMembers)
    return badFlag("--members", "the limit is 65536 members");
  layout.reads = o.op == OpKind::kRead;
  return layout;
}

Result<Layout> layoutOf(const BenchOptions& o, bool stored) {
  Layout layout = o.spec.layout;
  if (layout.pattern()) return patternLayout(o, stored);
  if (stored) {
    layout.scheme = Scheme::kPairwise;
    layout.targets = 0;
    const bool by_workers = o.local_workers != 0 && !o.has("num_initiator_dev");
    if (by_workers && layout.mode == Mode::kSg) layout.initiators = o.local_workers;
  }
  if (o.local_workers == 0) return layout;
  const bool counted = o.has("num_initiator_dev") || o.has("num_target_dev");
  if (!stored && !counted && layout.mode == Mode::kSg) {
    const std::uint32_t n = o.local_workers;
    layout.initiators = layout.scheme == Scheme::kManyToOne   ? n - 1
                        : layout.scheme == Scheme::kOneToMany ? 1
                                                              : n / 2;
    layout.targets = n - layout.initiators;
  }
  if (layout.processes() == o.local_workers) return layout;
  return badFlag(
      "--local_workers and --num_initiator_dev, --num_target_dev, --mode",
      fmt::format("{} x {} devices in mode {} need {} processes, not {}", layout.initiators,
                  layout.targets, modeName(layout.mode), layout.processes(), o.local_workers),
      "omit --local_workers, or set it to that number");
}

// Returns the bytes of a block for a given size: a piece of a pattern's operation, or all of it.
Result<std::uint64_t> blockOf(const Layout& layout, std::uint64_t size) {
  if (!layout.pattern()) return size;
  const std::uint32_t cuts = piecesOf(layout.scheme, layout.initiators).cuts;
  if (const std::uint64_t piece = measure::pieceBytes(size, cuts); piece != 0) return piece;
  return badFlag("--block_sizes",
                 fmt::format("{} cannot be cut into a piece for each of {} members",
                             base::showSize(size), layout.initiators),
                 fmt::format("use {} or more", base::showSize(cuts)));
}

Result<std::vector<Workload>> rowsOf(const BenchOptions& o,
                                     const std::vector<std::string>& backends,
                                     const Layout& layout) {
  std::vector<std::uint64_t> sizes = o.block_sizes;
  if (layout.scheme == Scheme::kMatrix) sizes = {*std::ranges::max_element(layout.matrix.bytes)};
  const bool doubling = o.as_nixlbench || o.has("start_block_size") || o.has("max_block_size");
  if (sizes.empty())
    sizes = doubling ? doubled(o.start_block_size, o.max_block_size) : measure::usualBlockSizes();
  std::vector<Workload> rows;
  for (const std::string& backend : backends)
    for (const std::uint64_t size : sizes) {
      VIADUCT_TRY(const std::uint64_t block, blockOf(layout, size));
      for (const std::uint64_t batch : batchesOf(o, layout, block)) {
        rows.push_back({.backend = backend,
                        .op = o.op,
                        .block_bytes = block,
                        .batch = static_cast<std::uint32_t>(batch)});
        setIterations(o, rows.back());
        if (std::count(rows.begin(), rows.end(), rows.back()) > 1)
          return badFlag("--block_sizes", fmt::format("{} is named twice", base::formatSize(size)));
        VIADUCT_CHECK(check(rows.back()));
      }
    }
  return rows;
}

PlanOrProblems planAsRead(const BenchOptions& o, const Settings& environment) {
  Settings settings = environment;
  if (o.has("secret")) settings.secret = o.secret;
  PlanOrProblems out;
  out.problems = contradictions(o);
  const auto backends = take(backendsOf(o, settings), out.problems);
  const auto kind = backends ? take(storageKind(*backends), out.problems) : std::nullopt;
  const bool stored = kind && *kind;
  auto layout = take(layoutOf(o, stored), out.problems);
  auto place = take(placeOf(o, settings, stored), out.problems);
  auto kv = backends && o.has("kv") ? take(kvRowsOf(o, *backends, place && !*place), out.problems)
                                    : std::nullopt;
  auto rows = kv ? std::optional(std::move(kv->rows))
              : backends && !o.has("kv")
                  ? take(rowsOf(o, *backends, layout.value_or(o.spec.layout)), out.problems)
                  : std::nullopt;
  auto storage = take(storageOf(o, stored ? *kind : std::nullopt, settings), out.problems);
  if (o.spec.layout.initiators > meet::kMaxMembers || o.spec.layout.targets > meet::kMaxMembers)
    out.problems.push_back(
        badFlag("--num_initiator_dev, --num_target_dev", "the limit is 65536 devices"));
  checkDevices(o, settings, place && !*place, out.problems);
  if (!out.problems.empty() || !layout || !rows || !place || !storage) return out;
  BenchPlan& plan = out.plan;
  plan.output = outputOf(o);
  plan.json = o.json;
  plan.command = commandText(o.as_nixlbench ? "nixlbench" : "viaduct bench", o.given);
  plan.remarks = std::move(storage->remarks);
  if (kv) std::ranges::move(kv->remarks, std::back_inserter(plan.remarks));
  plan.run.spec = specOf(o, *layout, *std::move(rows));
  plan.run.spec.storage = std::move(storage->choice);
  plan.run.settings = settings;
  if (auto set = take(withVariables(settings, storage->settings), out.problems))
    plan.run.settings = *std::move(set);
  findNobodyByName(plan.run.settings);
  plan.run.settings.backends.clear();
  std::vector<std::string> opened = movesGpuMemory(o) ? gpuBackends() : std::vector<std::string>{};
  for (const Workload& row : plan.run.spec.rows) opened.push_back(row.backend);
  for (std::string& name : opened)
    if (auto& b = plan.run.settings.backends; std::find(b.begin(), b.end(), name) == b.end())
      b.push_back(std::move(name));
  if (namesDevices(o) && !stored) plan.run.settings.rails = o.device_list;
  plan.run.usual_backends = !o.has("backend") && !o.as_nixlbench;
  plan.run.group = o.benchmark_group;
  plan.run.patience = o.meet_timeout;
  plan.run.place = *std::move(place);
  if (plan.run.place) {
    plan.run.rank = o.rank ? o.rank : rankFromEnvironment();
    // Two StatefulSets or two Jobs both count ranks from 0, so a rank may be taken.
    plan.run.rank_is_wish = !o.rank;
    listenForOthers(*plan.run.place, plan.run.settings);
  }
  if (auto fits = measure::memorySuffices(plan.run.spec, !plan.run.place); !fits)
    out.problems.push_back(std::move(fits).error());
  else if (auto room = measure::filesSuffice(plan.run.spec, !plan.run.place); !room)
    out.problems.push_back(std::move(room).error());
  return out;
}

bool mentions(const std::string& text, const std::string& flag) {
  const std::string word = "--" + flag;
  for (auto at = text.find(word); at != std::string::npos; at = text.find(word, at + 1))
    if (const auto end = at + word.size();
        end == text.size() ||
        (text[end] != '_' && !std::isalnum(static_cast<unsigned char>(text[end]))))
      return true;
  return false;
}

}  // namespace

RowLength rowLength(const BenchOptions& o, const Spec& spec) {
  RowLength out{base::formatDuration(spec.duration), base::formatDuration(spec.warmup)};
  if (o.has("iterations"))
    out.timed = fmt::to_string(o.iterations);
  else if (countsTimed(o))
    out.timed = fmt::to_string(roundedForThreads(o, o.num_iter));
  if (countsWarm(o)) out.warm = fmt::to_string(roundedForThreads(o, o.warmup_iter));
  return out;
}

PlanOrProblems planBench(const BenchOptions& options, const Settings& settings) {
  PlanOrProblems out = planAsRead(options, settings);
  std::erase_if(out.problems, [&](const Error& problem) {
    return std::any_of(options.unread.begin(), options.unread.end(),
                       [&](const std::string& flag) { return mentions(problem.text(), flag); });
  });
  return out;
}

}  // namespace viaduct::app
