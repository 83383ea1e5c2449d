#include "viaduct/doctor.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <optional>

#include "base/kept_signals.h"
#include "base/nearest.h"
#include "base/sizes.h"
#include "diag/environ.h"
#include "diag/live.h"
#include "diag/node_card.h"
#include "diag/snapshot.h"
#include "diag/topics.h"
#include "viaduct/help_text.h"
#include "viaduct/interrupt.h"
#include "viaduct/remarks.h"
#include "viaduct/snapshot_file.h"

namespace viaduct::app {
namespace {

int failDoctor(const std::string& why) {
  remark(why);
  return kExitNoDiagnosis;
}

// A folder with an unpacked snapshot. The destructor removes the folder.
class UnpackedSnapshot {
 public:
  static Result<UnpackedSnapshot> open(const std::string& file) {
    UnpackedSnapshot out;
    out.path_ = (std::filesystem::temp_directory_path() / "viaduct-doctor-XXXXXX").string();
    if (::mkdtemp(out.path_.data()) == nullptr)
      return Error{
          .code = Code::kInvalid,
          .operation = "doctor",
          .detail = "cannot make a folder in " + std::filesystem::temp_directory_path().string()};
    VIADUCT_CHECK(unpackSnapshot(file, out.path_));
    return out;
  }
  UnpackedSnapshot(UnpackedSnapshot&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  UnpackedSnapshot& operator=(UnpackedSnapshot&&) = delete;
  ~UnpackedSnapshot() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }
  std::string node() const { return path_ + "/node"; }

 private:
  UnpackedSnapshot() = default;
  std::string path_;
};

bool isFile(const std::string& path) {
  struct stat facts{};
  return ::stat(path.c_str(), &facts) == 0 && S_ISREG(facts.st_mode);
}

Result<diag::Node> ownNode(const std::vector<std::string>& names) {
  VIADUCT_TRY(diag::Node node, diag::nodeIn("/"));
  node.variables = diag::ownVariables();
  node.variables_from = "this process";
  node.live = diag::collectLive(node.tree, node.variables, {.names = names});
  return node;
}

std::optional<std::string> unknownTopic(const std::vector<std::string>& only) {
  std::vector<std::string> known;
  for (const diag::Topic& topic : diag::topics()) known.emplace_back(topic.name);
  for (const std::string& name : only) {
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    const std::string near = base::nearest(name, known);
    return fmt::format("there is no topic \"{}\"; {}topics: {}", name,
                       near.empty() ? "" : fmt::format("did you mean {}? ", near),
                       fmt::join(known, ", "));
  }
  return std::nullopt;
}

int listTopics() {
  for (const diag::Topic& topic : diag::topics())
    fmt::print("{}", helpEntry(topic.name, topic.about));
  return kExitFine;
}

int writeOwnSnapshot(const DoctorCommand& command) {
  const auto node = ownNode(command.names);
  if (!node) return failDoctor(node.error().text());
  const auto entries = diag::snapshotOf(*node);
  if (const auto written = writeSnapshot(command.snapshot_to, entries); !written)
    return failDoctor(written.error().text());
  std::error_code ignored;
  fmt::print(
      "{}: {} files, folders and links in {}\n"
      "Left out: variables that are not about transfers, passwords and tokens.\n"
      "Contents: tar tzf {}\n"
      "Diagnose it anywhere: viaduct doctor --root {}\n",
      command.snapshot_to, entries.size(),
      base::formatSize(std::filesystem::file_size(command.snapshot_to, ignored)),
      command.snapshot_to, command.snapshot_to);
  return kExitFine;
}

struct Examined {
  diag::Diagnosis diagnosis = {};
  std::string card = {};  // only if the command asks for it
};

Result<Examined> examine(const DoctorCommand& command, const std::string& root) {
  VIADUCT_TRY(diag::Node node, root == "/" ? ownNode(command.names) : diag::nodeIn(root));
  node.for_all_pods = command.node;
  if (command.card) return Examined{.card = diag::nodeCard(node)};
  return Examined{.diagnosis = {diag::nameOf(node), diag::diagnose(node, command.only)}};
}

// A signal does not interrupt this function, so that it removes the unpacked files. It takes a few
// seconds at most.
Result<Examined> examineSnapshot(const DoctorCommand& command) {
  const base::KeptSignals until_removed;
  const base::StopFlag& stop = stopOnSignals();
  VIADUCT_TRY(const UnpackedSnapshot unpacked, UnpackedSnapshot::open(command.root));
  auto out = examine(command, unpacked.node());
  if (stop.load()) return Error{.code = Code::kCancelled, .operation = "doctor"};
  return out;
}

int diagnoseNode(const DoctorCommand& command) {
  const auto examined =
      isFile(command.root) ? examineSnapshot(command) : examine(command, command.root);
  if (!examined) return failDoctor(examined.error().text());
  if (command.card) {
    fmt::print("{}", examined->card);
    return kExitFine;
  }
  const diag::Diagnosis& own = examined->diagnosis;
  if (!command.explain.empty()) return runDoctorExplain(command, own);
  if (!command.json)
    fmt::print("{}", doctorText(own, command.verbose));
  else if (command.peer.empty())
    fmt::print("{}", doctorJson(own));
  if (!command.listen.empty()) return runDoctorListen(command, own);
  if (!command.peer.empty()) return runDoctorPeer(command, own);
  return doctorExit(own.findings);
}

}  // namespace

int runDoctor(const DoctorCommand& command) {
  calledAs("viaduct doctor");
  if (command.list) return listTopics();
  if (const auto wrong = unknownTopic(command.only)) return failDoctor(*wrong);
  if (command.snapshot) return writeOwnSnapshot(command);
  return diagnoseNode(command);
}

}  // namespace viaduct::app
