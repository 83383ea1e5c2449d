#include <fmt/format.h>
#include <fmt/ranges.h>
#include <viaduct/backend.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <utility>

#include "base/sizes.h"
#include "base/text.h"
#include "measure/workload/collective.h"
#include "measure/workload/machine.h"
#include "measure/workload/storage.h"
#include "meet/groups/group.h"
#include "meet/groups/serve.h"
#include "viaduct/against_settings.h"
#include "viaduct/bench_plan.h"
#include "viaduct/bench_values.h"
#include "viaduct/ranks.h"
#include "viaduct/version.h"

namespace viaduct::app {
namespace {

using measure::Layout;
using measure::Mode;
using measure::Scheme;
using measure::Spec;

constexpr std::string_view kVram = "VRAM";
// A backend of nixlbench that viaduct may lack: the reason, and a replacement. Without a reason,
// only this build lacks the backend.
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

bool movesGpuMemory(const RunOptions& o) {
  return o.initiator_seg_type == kVram || o.target_seg_type == kVram;
}

// Returns the backends that pin memory of GPUs.
std::vector<std::string> gpuBackends() {
  std::vector<std::string> out;
  for (const std::string_view name : builtInBackends())
    if (backendFacts(name)->gpus) out.emplace_back(name);
  return out;
}

// Returns the backends of the options, otherwise those of VIADUCT_BACKENDS that have no storage,
// otherwise the usual ones.
std::vector<std::string> wantedBackends(const RunOptions& o, const Settings& settings) {
  if (!o.backends.empty()) return o.backends;
  std::vector<std::string> listed = backendsBetweenMembers(settings);
  if (!listed.empty()) return listed;
  // Between host memory and a GPU of another process, a GPU backend is only a stage of other
  // backends.
  const bool between_gpus = o.initiator_seg_type == kVram && o.target_seg_type == kVram;
  std::vector<std::string> usual = between_gpus ? gpuBackends() : std::vector<std::string>{};
  for (const BackendFacts& backend : backendFacts())
    if (backend.usual) usual.emplace_back(backend.name);
  return usual;
}

Result<std::vector<std::string>> backendsOf(const RunOptions& o, const Settings& settings) {
  const std::vector<std::string_view> known = builtInBackends();
  std::vector<std::string> out;
  for (const std::string& name : wantedBackends(o, settings)) {
    const std::string ours = backendNamed(name);
    const auto same = [&](std::string_view one) { return base::sameWord(one, ours); };
    const auto at = std::find_if(known.begin(), known.end(), same);
    if (at != known.end() && std::find(out.begin(), out.end(), *at) != out.end())
      return badFlag("--backend", fmt::format("{} is named twice", name));
    if (at == known.end()) {
      Error error = notBuiltIn(name, o.has("backend") || o.command != "nixlbench");
      if (o.backends.empty()) error.operation = "VIADUCT_BACKENDS";
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

std::uint64_t workingSetOf(const RunOptions& o) {
  if (o.working_set != 0) return o.working_set;
  if (!o.cold) return 0;
  return o.spec.buffer_bytes != 0 ? ~std::uint64_t{0} / 2 : measure::coldBytes();
}

Spec specOf(const RunOptions& o, const Layout& layout, std::vector<measure::Workload> rows) {
  Spec spec = o.spec;
  spec.layout = layout;
  spec.rows = std::move(rows);
  spec.working_set = workingSetOf(o);
  if (spec.reregister) spec.memory = measure::MemoryChoice::kMalloc;
  if (o.initiator_seg_type == kVram) spec.initiator_gpu = 0;
  if (o.target_seg_type == kVram && !layout.stored()) spec.target_gpu = 0;
  return spec;
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

bool namesDevices(const RunOptions& o) {
  return !o.device_list.empty() && o.device_list != std::vector<std::string>{"all"};
}

// `alone` is true if all workers run here. On several hosts an agent waits for its devices instead,
// because a pod may get them a little later.
void checkDevices(const RunOptions& o, const Settings& settings, bool alone,
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

// Returns the agents' settings with the backends of the rows, without the directory of names.
Settings agentsOf(const RunOptions& o, Settings settings, const Spec& spec) {
  findNobodyByName(settings);
  settings.backends.clear();
  std::vector<std::string> opened = movesGpuMemory(o) ? gpuBackends() : std::vector<std::string>{};
  for (const measure::Workload& row : spec.rows) opened.push_back(row.backend);
  for (std::string& name : opened)
    if (auto& b = settings.backends; std::find(b.begin(), b.end(), name) == b.end())
      b.push_back(std::move(name));
  if (namesDevices(o) && !spec.layout.stored()) settings.rails = o.device_list;
  return settings;
}

// Returns the meeting place that the options name. Nothing: all workers run on this machine.
Result<std::optional<meet::PlaceOptions>> placeOf(const MeetingOptions& o,
                                                  const Settings& settings) {
  if (o.where.empty() && o.rank)
    return badFlag("--rank", "all workers run here and get their ranks automatically",
                   "give --meet to meet workers of other machines");
  if (o.where.empty()) return std::optional<meet::PlaceOptions>();
  meet::PlaceOptions place = meet::placeOptionsOf(o.where, settings);
  place.serve = true;
  place.insecure = settings.insecure;
  // Reports wrong options of the meeting place before any measurement. This call sends nothing to
  // the place.
  VIADUCT_CHECK(meet::openGroupPlace(place));
  return std::optional(std::move(place));
}

// Chooses the addresses on which agents listen, unless the user chose some: all addresses if
// members may run on other machines.
void listenForOthers(const meet::PlaceOptions& place, Settings& settings) {
  const auto address = meet::embeddedAddress(place);
  const bool here =
      address && (address->starts_with("127.") || address->starts_with("localhost:") ||
                  address->starts_with("[::1]"));
  if (settings.listen != Settings{}.listen) return;
  settings.listen =
      here ? measure::listenHere(settings.rails) : std::vector<std::string>{"0.0.0.0:0"};
}

void meetAt(std::optional<meet::PlaceOptions> place, const RunOptions& o,
            measure::RunRequest& run) {
  run.group = o.meeting.group;
  run.patience = o.meeting.timeout;
  run.place = std::move(place);
  if (!run.place) return;
  run.rank = o.meeting.rank ? o.meeting.rank : rankFromEnvironment();
  // Two StatefulSets or two Jobs both count ranks from 0, so a rank may be taken.
  run.rank_is_wish = !o.meeting.rank;
  listenForOthers(*run.place, run.settings);
}

// Refuses storage for a workload between members.
Result<StoragePlan> noStorage(std::optional<MemoryKind> kind) {
  if (!kind) return StoragePlan{};
  return badFlag("--backend", "storage is no member that could send or receive",
                 "name a backend between members");
}

PlanOrProblems planAsRead(const RunOptions& o, const Settings& environment, RowMaker maker) {
  Settings settings = environment;
  if (o.has("secret")) settings.secret = o.meeting.secret;
  PlanOrProblems out{.problems = std::move(maker.found)};
  addContradictions(o, out.problems);
  const auto backends = take(backendsOf(o, settings), out.problems);
  const auto kind = backends ? take(storageKind(*backends), out.problems) : std::nullopt;
  const bool stored = kind && *kind;
  auto layout =
      maker.layout ? take(maker.layout(stored), out.problems) : std::optional(o.spec.layout);
  auto place = take(placeOf(o.meeting, settings), out.problems);
  const bool alone = place && !*place;
  auto rows = backends
                  ? take(maker.rows(*backends, layout.value_or(o.spec.layout), alone), out.problems)
                  : std::nullopt;
  const auto storing = maker.storage ? maker.storage : noStorage;
  auto storage = take(storing(stored ? *kind : std::nullopt), out.problems);
  checkDevices(o, settings, alone, out.problems);
  if (!out.problems.empty() || !layout || !rows || !place || !storage) return out;
  BenchPlan& plan = out.plan;
  plan.output = o.out.form.value_or(OutputForm::kTable);
  plan.json = o.out.json;
  plan.command = commandText(o.command, o.given);
  plan.remarks = std::move(storage->remarks);
  std::ranges::move(rows->remarks, std::back_inserter(plan.remarks));
  plan.run.spec = specOf(o, *layout, std::move(rows->rows));
  plan.run.spec.storage = std::move(storage->choice);
  if (auto set = take(withVariables(settings, storage->settings), out.problems))
    settings = *std::move(set);
  plan.run.settings = agentsOf(o, std::move(settings), plan.run.spec);
  plan.run.build = thisBuild();
  plan.run.usual_backends = o.backends.empty();
  meetAt(*std::move(place), o, plan.run);
  if (auto fits = measure::memorySuffices(plan.run.spec, alone); !fits)
    out.problems.push_back(std::move(fits).error());
  else if (auto room = measure::filesSuffice(plan.run.spec, alone); !room)
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

std::vector<std::string> backendsBetweenMembers(const Settings& settings) {
  std::vector<std::string> listed = settings.backends;
  std::erase_if(listed, isStorage);
  return listed;
}

Result<PlannedRows> rowsOf(const RunOptions& o, const std::vector<std::string>& backends,
                           const std::vector<std::uint64_t>& blocks,
                           const std::vector<std::uint32_t>& batches) {
  const std::uint64_t each =
      o.iterations == 0 ? 0 : std::max<std::uint64_t>(o.iterations / o.spec.threads, 1);
  PlannedRows out;
  for (const std::string& backend : backends)
    for (const std::uint64_t block : blocks) {
      const auto usual = std::vector{measure::usualBatch(block)};
      for (const std::uint32_t batch : batches.empty() ? usual : batches) {
        out.rows.push_back({.backend = backend,
                            .op = o.op,
                            .block_bytes = block,
                            .batch = batch,
                            .iterations = each});
        if (std::count(out.rows.begin(), out.rows.end(), out.rows.back()) > 1)
          return badFlag("--block_sizes", fmt::format("{} is named twice", base::showSize(block)));
        VIADUCT_CHECK(check(out.rows.back()));
      }
    }
  return out;
}

PlanOrProblems planRows(const RunOptions& options, const Settings& settings, RowMaker maker) {
  PlanOrProblems out = planAsRead(options, settings, std::move(maker));
  std::erase_if(out.problems, [&](const Error& problem) {
    return std::any_of(options.unread.begin(), options.unread.end(),
                       [&](const std::string& flag) { return mentions(problem.text(), flag); });
  });
  return out;
}

}  // namespace viaduct::app
