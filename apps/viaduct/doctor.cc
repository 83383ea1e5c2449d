#include "viaduct/doctor.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <optional>

#include "base/kept_signals.h"
#include "base/nearest.h"
#include "base/replaced_file.h"
#include "base/sizes.h"
#include "diag/environ.h"
#include "diag/live.h"
#include "diag/node_card.h"
#include "diag/snapshot.h"
#include "diag/topics.h"
#include "viaduct/bench_values.h"
#include "viaduct/command_line.h"
#include "viaduct/command_names.h"
#include "viaduct/help_text.h"
#include "viaduct/interrupt.h"
#include "viaduct/remarks.h"
#include "viaduct/snapshot_file.h"

namespace viaduct::app {
namespace {

// A folder with an unpacked snapshot. The destructor removes the folder.
class UnpackedSnapshot {
 public:
  static Result<UnpackedSnapshot> open(const std::string& file, const base::StopFlag& stop) {
    UnpackedSnapshot out;
    std::error_code missing;
    const auto parent = std::filesystem::temp_directory_path(missing);
    std::string path = (parent / "viaduct-doctor-XXXXXX").string();
    if (missing || ::mkdtemp(path.data()) == nullptr)
      return Error{
          .code = Code::kInvalid,
          .operation = "doctor",
          .detail = fmt::format("cannot make a folder in {}", missing ? "/tmp" : parent.string()),
          .cause = "there is no folder for temporary files, or it is not writable",
          .remedy = "set TMPDIR to a writable folder"};
    out.path_ = std::move(path);
    VIADUCT_CHECK(unpackSnapshot(file, out.path_, &stop));
    return out;
  }
  UnpackedSnapshot(UnpackedSnapshot&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  UnpackedSnapshot(const UnpackedSnapshot&) = delete;
  UnpackedSnapshot& operator=(const UnpackedSnapshot&) = delete;
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

// The buckets to ask for. A store that the environment names is asked even without a bucket, unless
// the variables are those of a container and the node is to be examined.
std::vector<std::string> bucketsFor(const DoctorCommand& command, const diag::Node& node) {
  if (!command.buckets.empty() || command.node) return command.buckets;
  for (const char* variable :
       {"VIADUCT_OBJECT_ENDPOINT", "AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"})
    if (node.variable(variable) != nullptr) return {""};
  return {};
}

Result<diag::Node> ownNode(const DoctorCommand& command) {
  VIADUCT_TRY(diag::Node node, diag::nodeIn("/"));
  node.variables = diag::ownVariables();
  node.variables_from = "this process";
  node.live = diag::collectLive(
      node.tree, node.variables,
      {.names = command.names, .paths = command.paths, .buckets = bucketsFor(command, node)});
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

Result<int> writeOwnSnapshot(const DoctorCommand& command) {
  VIADUCT_TRY(const diag::Node node, ownNode(command));
  const auto entries = diag::snapshotOf(node);
  VIADUCT_CHECK(writeSnapshot(command.snapshot_to, entries));
  std::error_code ignored;
  fmt::print(
      "{}: {} files, folders and links in {}\n"
      "Left out: variables that are not about transfers, passwords and tokens.\n"
      "Contents: tar tzf {}\n"
      "Diagnose it anywhere: {} --root {}\n",
      command.snapshot_to, entries.size(),
      base::roundedSize(std::filesystem::file_size(command.snapshot_to, ignored)),
      command.snapshot_to, asTyped("viaduct doctor"), command.snapshot_to);
  return kExitFine;
}

struct Examined {
  diag::Diagnosis diagnosis = {};
  std::string card = {};  // only if the command asks for it
};

Result<Examined> examine(const DoctorCommand& command, const std::string& root) {
  VIADUCT_TRY(diag::Node node, root == "/" ? ownNode(command) : diag::nodeIn(root));
  node.for_all_pods = command.node;
  if (command.card) return Examined{.card = diag::nodeCard(node)};
  diag::Diagnosis out{diag::nameOf(node), diag::diagnose(node, command.only),
                      diag::nodeFacts(node)};
  out.facts.push_back({"viaduct", VIADUCT_VERSION});
  return Examined{.diagnosis = std::move(out)};
}

// A signal ends the unpacking, and the unpacked files are removed in each case.
Result<Examined> examineSnapshot(const DoctorCommand& command) {
  const base::KeptSignals until_removed;
  const base::StopFlag& stop = stopOnSignals();
  VIADUCT_TRY(const UnpackedSnapshot unpacked, UnpackedSnapshot::open(command.root, stop));
  auto out = examine(command, unpacked.node());
  if (stop.load()) return Error{.code = Code::kCancelled, .operation = "doctor"};
  return out;
}

Status writeJson(const std::string& file, const diag::Diagnosis& diagnosis) {
  VIADUCT_TRY(const auto target, base::ReplacedFile::open("write the diagnosis", file));
  return target.write(doctorJson(diagnosis));
}

Result<int> diagnoseNode(const DoctorCommand& command) {
  VIADUCT_TRY(const Examined examined,
              isFile(command.root) ? examineSnapshot(command) : examine(command, command.root));
  if (command.card) {
    fmt::print("{}", examined.card);
    return kExitFine;
  }
  const diag::Diagnosis& own = examined.diagnosis;
  if (!command.explain.empty()) return runDoctorExplain(command, own);
  if (!command.json)
    fmt::print("{}", doctorText(own, command.verbose));
  else if (command.peer.empty())
    fmt::print("{}", doctorJson(own));
  if (!command.json_to.empty()) VIADUCT_CHECK(writeJson(command.json_to, own));
  if (!command.serve.empty())
    return runDoctorServe(command, own, [&]() -> Result<diag::Diagnosis> {
      VIADUCT_TRY(Examined now, examine(command, command.root));
      return std::move(now.diagnosis);
    });
  if (!command.listen.empty()) return runDoctorListen(command, own);
  if (!command.peer.empty()) return runDoctorPeer(command, own);
  return doctorExit(own.findings);
}

int runDoctor(const DoctorCommand& command) {
  if (command.list) return listTopics();
  if (const auto wrong = unknownTopic(command.only)) return fail(*wrong, kExitNoDiagnosis);
  // A network path can only be measured from a running machine, and this doctor is one of its ends.
  if ((command.root != "/") + !command.listen.empty() + !command.peer.empty() > 1)
    return fail("each of --root, --listen and --peer excludes the others; what to do: drop one",
                kExitNoDiagnosis);
  if (!command.serve.empty() && (isFile(command.root) || command.card || !command.listen.empty() ||
                                 !command.peer.empty() || !command.explain.empty()))
    return fail(
        "--serve watches one node; what to do: drop --listen, --peer, --card and --explain, "
        "and give --root a folder",
        kExitNoDiagnosis);
  if (command.root != "/" && !(command.paths.empty() && command.buckets.empty()))
    return fail("--path and --bucket look at this machine; what to do: drop them, or drop --root",
                kExitNoDiagnosis);
  return orFail(diagnoseNode(command), kExitNoDiagnosis);
}

int runSnapshot(const DoctorCommand& command) {
  return orFail(writeOwnSnapshot(command), kExitNoDiagnosis);
}

// Reads "kv" or "s3://kv".
Status intoBuckets(std::string_view text, std::vector<std::string>& into) {
  constexpr std::string_view kScheme = "s3://";
  VIADUCT_CHECK(intoWords(text, into));
  for (std::string& name : into) {
    if (name.starts_with(kScheme)) name.erase(0, kScheme.size());
    if (name.empty() || name.find('/') != std::string::npos)
      return badFlag("bucket", fmt::format("\"{}\" is no bucket", text), "give a name such as kv");
  }
  return Ok{};
}

using DoctorFlag = Flag<DoctorCommand>;
constexpr DoctorFlag kPathFlag{"path", "PATH ...", "",
                               "also look at these files, folders and block devices: O_DIRECT, the "
                               "file system, free room",
                               add<intoOneText, &DoctorCommand::paths>};
constexpr DoctorFlag kBucketFlag{
    "bucket", "NAME,... ...", "",
    "also ask the S3 store for these buckets; the variables AWS_* and VIADUCT_OBJECT_* name the "
    "store. A store that VIADUCT_OBJECT_ENDPOINT or AWS_ENDPOINT_URL names is asked in any case",
    add<intoBuckets, &DoctorCommand::buckets>};
constexpr std::array kDoctorFlags{
    DoctorFlag{"root", "PATH", "/", "diagnose the node in this folder or snapshot",
               set<intoText, &DoctorCommand::root>},
    DoctorFlag{"only", "TOPIC,... ...", "", "look at these topics only; --list names them",
               add<intoWords, &DoctorCommand::only>},
    DoctorFlag{"node", "", "",
               "diagnose the node for all its pods: leave out the limits, variables, libraries and "
               "device files of this container",
               set<intoYesNo, &DoctorCommand::node>},
    DoctorFlag{"list", "", "", "list the topics", set<intoYesNo, &DoctorCommand::list>},
    DoctorFlag{"json", "", "", "print JSON", set<intoYesNo, &DoctorCommand::json>},
    DoctorFlag{"verbose", "", "", "also print each fact that is in order",
               set<intoYesNo, &DoctorCommand::verbose>},
    DoctorFlag{"card", "", "", "print the facts of this node as a Markdown table",
               set<intoYesNo, &DoctorCommand::card>},
    DoctorFlag{"resolve", "HOST,... ...", "",
               "also look up these host names, besides those of the meeting place",
               add<intoWords, &DoctorCommand::names>},
    kPathFlag,
    kBucketFlag,
    DoctorFlag{"explain", "FILE", "",
               "explain the known error texts in this log; - reads standard input",
               set<intoText, &DoctorCommand::explain>},
    DoctorFlag{"output", "FILE", "", "also write the JSON into this file",
               set<intoText, &DoctorCommand::json_to>},
    DoctorFlag{"serve", "[HOST:]PORT", "",
               "then stay, and serve the findings and the links' counters as metrics here; a port "
               "alone is one of loopback, and 0 a free one",
               set<intoText, &DoctorCommand::serve>},
    DoctorFlag{"every", "TIME", "5m", "with --serve: time between two diagnoses",
               set<intoPause, &DoctorCommand::every>},
    DoctorFlag{"listen", "IP[:PORT]", "port 5555",
               "then wait here for the doctor of another host, at this address of this host",
               set<intoText, &DoctorCommand::listen>},
    DoctorFlag{"peer", "IP[:PORT]", "",
               "also read the diagnosis of the doctor that listens there, and measure the path",
               set<intoText, &DoctorCommand::peer>},
    DoctorFlag{"secret", "WORD", "", "secret that --listen and --peer share",
               set<intoText, &DoctorCommand::secret>},
};
constexpr std::array kSnapshotFlags{
    DoctorFlag{"output", "FILE", "required", "the file to write",
               set<intoText, &DoctorCommand::snapshot_to>},
    DoctorFlag{"resolve", "HOST,... ...", "",
               "also look up these host names, besides those of the meeting place",
               add<intoWords, &DoctorCommand::names>},
    kPathFlag,
    kBucketFlag,
};
constexpr std::array kNodesFlags{
    DoctorFlag{"FILES", "FILES ...", "required",
               "outputs of `viaduct doctor --json`, one for each node, also within a log; - reads "
               "standard input",
               add<intoOneText, &DoctorCommand::files>},
    DoctorFlag{"output", "FILE", "", "also write an HTML page",
               set<intoText, &DoctorCommand::page>},
    DoctorFlag{
        "expect", "NODE,...", "",
        "the nodes that should have answered; a node without a result is reported. Also takes "
        "the output of `kubectl get nodes -o name`",
        set<intoText, &DoctorCommand::expected>},
};
constexpr auto kNodesAbout =
    "Make one page of many nodes' diagnoses.\n\n"
    "Findings that several nodes share are one entry, the worst first: \"11 of 64 nodes\", with "
    "the "
    "fix. The page also lists the facts in which the nodes differ, and the nodes that did not "
    "answer. The page needs no network and no script.";
constexpr auto kNodesMore =
    "Exit codes: those of `viaduct doctor` for the worst node; a node that did not answer counts "
    "as "
    "1.\n\n"
    "Examples:\n"
    "  kubectl -n viaduct logs -l part=doctor --tail=-1 | deploy/collect-results.sh nodes\n"
    "  viaduct doctor nodes nodes/*.json -o nodes.html --expect \"$(kubectl get nodes -o name)\"";
constexpr auto kDoctorAbout =
    "Find out what keeps this node from fast transfers.\n\n"
    "The doctor looks at RDMA devices, PCIe, IOMMU, GPUs, limits, networks, libraries, variables, "
    "files and object stores. Each finding has its evidence, its cause and the exact fix. The "
    "doctor changes "
    "nothing.\n\n"
    "It needs no privileges. As root it sees more: the kernel log and PCI access control.";
constexpr auto kDoctorMore =
    "Exit codes: 0 if nothing is wrong; 1 if there are warnings, or facts that could not be looked "
    "at; 2 if something will not work; 3 if the command line is wrong or the doctor failed.\n\n"
    "Examples:\n"
    "  viaduct doctor\n"
    "  viaduct doctor --only rdma,iommu --json\n"
    "  viaduct doctor --path /nvme --bucket kv-cache\n"
    "  kubectl logs prefill-0 | viaduct doctor --explain -\n"
    "  viaduct doctor --listen 192.168.1.100     # on one host\n"
    "  viaduct doctor --peer 192.168.1.100       # on the other\n"
    "  viaduct doctor --node --serve 0.0.0.0:27181\n"
    "  viaduct doctor snapshot -o node.tar.gz\n"
    "  viaduct doctor --root node.tar.gz";
constexpr auto kSnapshotAbout =
    "Copy what the doctor looks at into one file.\n\nThe file holds small files of the kernel "
    "and the variables about transfers, without passwords and tokens. `viaduct doctor --root "
    "FILE` diagnoses it on another machine; `tar tzf FILE` lists it.";

}  // namespace

Command doctorCommand(std::vector<Command> more) {
  const Command snapshot =
      commandOf<DoctorCommand>({.name = "viaduct doctor snapshot",
                                .about = kSnapshotAbout,
                                .more = "Example:\n  viaduct doctor snapshot -o node.tar.gz",
                                .flags = kSnapshotFlags,
                                .run = runSnapshot,
                                .wrong = kExitNoDiagnosis});
  const Command nodes = commandOf<DoctorCommand>({.name = "viaduct doctor nodes",
                                                  .about = kNodesAbout,
                                                  .more = kNodesMore,
                                                  .flags = kNodesFlags,
                                                  .run = runDoctorNodes,
                                                  .wrong = kExitNoDiagnosis});
  more.insert(more.begin(), {snapshot, nodes});
  return commandOf<DoctorCommand>({.name = "viaduct doctor",
                                   .about = kDoctorAbout,
                                   .more = kDoctorMore,
                                   .flags = kDoctorFlags,
                                   .run = runDoctor,
                                   .wrong = kExitNoDiagnosis,
                                   .nested = std::move(more)});
}

}  // namespace viaduct::app
