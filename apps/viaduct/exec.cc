#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

#include "base/environment.h"
#include "base/file_error.h"
#include "base/replaced_file.h"
#include "base/sizes.h"
#include "base/text.h"
#include "diag/name_list.h"
#include "diag/topics.h"
#include "viaduct/bench_values.h"
#include "viaduct/command_line.h"
#include "viaduct/env.h"
#include "viaduct/remarks.h"

namespace viaduct::app {
namespace {

// The exit codes that shells use.
constexpr int kCannotRun = 126, kNotFound = 127;

struct ExecOptions {
  bool force = false, dry_run = false;
  bool require_rdma = false, nixl = false;
  std::vector<std::string> command = {};
};

constexpr auto kLook = "viaduct doctor --only sriov,rdma";

// Fails if the program could not use every RDMA device that it was given, or has none.
Status rdmaIsThere(const diag::Advice& advice) {
  const bool none = advice.pod.verbs.empty() && advice.pod.efa.empty();
  if (!none && advice.absent.empty()) return Ok{};
  return Error{.code = Code::kUnsupported,
               .operation = "--require rdma",
               .detail = advice.absent.empty() ? advice.devices : advice.absent,
               .cause = "the program would use TCP",
               .remedy = kLook};
}

// Warns before the start, because a program that falls back to TCP does not say so.
void warnOfAbsentDevices(const diag::Advice& advice) {
  if (!advice.absent.empty())
    remark(fmt::format(
        "{} {}: the program may use TCP; to mend it: {}; --require rdma refuses the start",
        diag::severityName(diag::Severity::kWarning), advice.absent, kLook));
}

void sayDevices(const diag::Advice& advice) {
  const diag::PodView& pod = advice.pod;
  const std::string names = diag::namesOf(pod.efa.empty() ? pod.verbs : pod.efa, ",");
  if (names.empty())
    remark(advice.devices);
  else if (pod.given.known_by <= diag::KnownBy::kAddresses)
    remark("Auto-detected allocated SR-IOV devices: " + names);
  else
    remark("Auto-detected RDMA devices: " + names);
  for (const std::string& one : advice.remarks) remark(one);
}

void sayVariables(const diag::Advice& advice, const std::vector<EnvVariable>& variables) {
  for (const EnvVariable& one : variables) {
    const auto advised = [&](const diag::AdvisedVariable& other) { return other.name == one.name; };
    if (!one.kept)
      remark(fmt::format("sets {}={}", one.name, one.value));
    else if (std::any_of(advice.set.begin(), advice.set.end(), advised))
      remark(fmt::format("keeps {}={}; --force replaces it", one.name, diag::printable(one.value)));
  }
}

// Warns about variables that viaduct does not set and that may disable RDMA.
void sayFaults(diag::Node node, const std::vector<EnvVariable>& variables) {
  for (const EnvVariable& one : variables) node.variables[one.name] = one.value;
  const std::vector<std::string> only{"variables"};
  const diag::Findings findings = diag::diagnose(node, only);
  for (const diag::Finding& one : findings.all())
    if (one.severity >= diag::Severity::kWarning)
      remark(fmt::format("{} {}; to mend it: {}", diag::severityName(one.severity), one.what,
                         one.fix.substr(0, one.fix.find('\n'))));
}

std::string limitText(rlim_t limit, bool bytes) {
  if (limit == RLIM_INFINITY) return "unlimited";
  return bytes ? base::roundedSize(limit) : fmt::to_string(limit);
}

// Raises the soft and the hard limit if that is permitted, and otherwise the soft limit up to the
// hard limit.
void raiseLimit(decltype(RLIMIT_MEMLOCK) which, const char* name, rlim_t wanted, bool bytes,
                const char* advice) {
  rlimit before{};
  if (::getrlimit(which, &before) != 0 || before.rlim_cur >= wanted) return;
  const rlimit most{.rlim_cur = wanted, .rlim_max = std::max(wanted, before.rlim_max)};
  const rlimit permitted{.rlim_cur = std::min(wanted, before.rlim_max),
                         .rlim_max = before.rlim_max};
  if (::setrlimit(which, &most) != 0) ::setrlimit(which, &permitted);
  rlimit after = before;
  ::getrlimit(which, &after);
  if (after.rlim_cur != before.rlim_cur)
    remark(fmt::format("raises the limit of {} from {} to {}", name,
                       limitText(before.rlim_cur, bytes), limitText(after.rlim_cur, bytes)));
  if (after.rlim_cur < wanted)
    remark(fmt::format("the limit of {} is {} and cannot be raised further{}", name,
                       limitText(after.rlim_cur, bytes), advice));
}

void raiseLimits() {
  // A higher limit would slow programs that close each descriptor number up to the limit when they
  // start.
  constexpr rlim_t kEnoughFiles = rlim_t{1} << 20U;
  raiseLimit(RLIMIT_MEMLOCK, "locked memory", RLIM_INFINITY, true,
             "; what to do: viaduct doctor --only limits");
  raiseLimit(RLIMIT_NOFILE, "open files", kEnoughFiles, false, "");
}

// Replaces the file atomically. Only this user may read it, because values may be private.
Status writeWhole(const std::string& folder, const std::string& text) {
  constexpr mode_t kOurFolder = 0700;
  const std::string file = folder + "/env";
  if (::mkdir(folder.c_str(), kOurFolder) != 0 && errno != EEXIST)
    return base::fileError("create the folder", errno, folder);
  VIADUCT_TRY(const auto target, base::ReplacedFile::openPrivate("write the file", file));
  return target.write(text);
}

void writeForLaterShells(const std::string& text) {
  std::vector<std::string> folders{"/run/viaduct"};
  const char* const own = base::variable("XDG_RUNTIME_DIR");
  if (own != nullptr && *own == '/') folders.insert(folders.begin(), std::string(own) + "/viaduct");
  std::vector<std::string> problems;
  for (const std::string& folder : folders) {
    const Status written = writeWhole(folder, text);
    if (written) return remark(fmt::format("later shells get the variables by: . {}/env", folder));
    problems.push_back(written.error().text());
  }
  remark(fmt::format("goes on without a file of the variables for later shells: {}",
                     fmt::join(problems, "; ")));
}

// True if a folder of PATH has the name. execvp() reports "permission denied" for a missing name if
// one folder cannot be searched.
bool isInPath(const std::string& name) {
  const char* const path = base::variable("PATH");
  const auto folders = base::partsOf(path == nullptr ? "/bin:/usr/bin" : path, ':');
  return std::any_of(folders.begin(), folders.end(), [&](const std::string& folder) {
    return ::access((folder + "/" + name).c_str(), F_OK) == 0;
  });
}

// The folder of libnixl_capi.so that belongs to this program: installed, or in the build.
std::optional<std::string> nixlFolder() {
  namespace fs = std::filesystem;
  std::error_code unread;
  const fs::path here = fs::read_symlink("/proc/self/exe", unread).parent_path();
  for (const char* const folder : {VIADUCT_NIXL_FOLDERS}) {
    const fs::path found = (here / folder).lexically_normal();
    if (fs::exists(found / "libnixl_capi.so", unread)) return found.string();
  }
  return std::nullopt;
}

// Makes programs that open libnixl_capi.so find this one. A folder in front of LD_LIBRARY_PATH wins
// over the folders of the loader's cache.
Status addNixl(const diag::Variables& own, bool force, std::vector<EnvVariable>& into) {
  constexpr auto kReason = "Programs that call NIXL from Rust or C run over Viaduct.";
  constexpr auto kPaths = "LD_LIBRARY_PATH", kLibrary = "KVBM_NIXL_CAPI_LIB";
  const auto folder = nixlFolder();
  if (!folder)
    return Error{.code = Code::kNotFound,
                 .operation = "--nixl",
                 .detail = "libnixl_capi.so is not installed beside this program",
                 .remedy = "install the package libviaduct-nixl, or all of `cmake --install`"};
  const auto paths = own.find(kPaths), library = own.find(kLibrary);
  const bool more = paths != own.end() && !paths->second.empty();
  const bool kept = !force && library != own.end() && !library->second.empty();
  into.push_back({kPaths, more ? *folder + ":" + paths->second : *folder, kReason});
  into.push_back({kLibrary, kept ? library->second : *folder + "/libnixl_capi.so", kReason, kept});
  return Ok{};
}

int becomeCommand(const std::vector<std::string>& command) {
  std::vector<char*> words;
  words.reserve(command.size() + 1);
  for (const std::string& one : command) words.push_back(const_cast<char*>(one.c_str()));
  words.push_back(nullptr);
  std::fflush(nullptr);
  ::execvp(words[0], words.data());
  const int why = errno;
  const bool sought = command[0].find('/') == std::string::npos;
  const bool missing = why == ENOENT || why == ENOTDIR || (sought && !isInPath(command[0]));
  remark(missing && sought ? fmt::format("{}: no such program in PATH", command[0])
                           : fmt::format("{}: {}", command[0], ::strerror(why)));
  return missing ? kNotFound : kCannotRun;
}

// Returns only if the command cannot be started.
int runExec(const ExecOptions& options) {
  if (options.command.empty() || options.command[0].empty())
    return fail("no command; what to do: name it behind --, as in `viaduct exec -- COMMAND`",
                kExitUsage);
  auto node = nodeAt("/", std::nullopt);
  if (!node) return fail(node.error().text(), kExitFailed);
  const diag::Advice advice = diag::adviceFor(*node);
  auto variables = environmentFor(advice, node->variables, options.force);
  if (options.nixl)
    if (const Status added = addNixl(node->variables, options.force, variables); !added)
      return fail(added.error().text(), kCannotRun);
  if (const Status there = rdmaIsThere(advice); options.require_rdma && !there)
    return fail(there.error().text(), kCannotRun);
  warnOfAbsentDevices(advice);
  sayDevices(advice);
  sayVariables(advice, variables);
  sayFaults(*std::move(node), variables);
  const std::string text = shellText(advice, variables);
  if (options.dry_run) {
    std::string words;
    for (const std::string& one : options.command) words += " " + singleQuoted(one);
    fmt::print("{}exec{}\n", text, words);
    return kExitOk;
  }
  raiseLimits();
  writeForLaterShells(text);
  for (const EnvVariable& one : variables) ::setenv(one.name.c_str(), one.value.c_str(), 1);
  return becomeCommand(options.command);
}

Status intoRequirement(std::string_view text, ExecOptions& into) {
  into.require_rdma = text == "rdma";
  if (into.require_rdma) return Ok{};
  return wrongValue(fmt::format("\"{}\" is not rdma", text), "write --require rdma");
}

using ExecFlag = Flag<ExecOptions>;
constexpr std::array kExecFlags{
    ExecFlag{"COMMAND", "-- COMMAND [ARGUMENTS...]", "", "the program and its arguments",
             add<intoOneText, &ExecOptions::command>},
    ExecFlag{"force", "", "", "replace variables that are set already",
             set<intoYesNo, &ExecOptions::force>},
    ExecFlag{"nixl", "", "",
             "let a program that calls NIXL from Rust or C find Viaduct's libnixl_capi.so",
             set<intoYesNo, &ExecOptions::nixl>},
    ExecFlag{"require", "rdma", "",
             "start nothing if the pod has no active RDMA device, or lacks one that the device "
             "plugin names",
             intoRequirement},
    ExecFlag{"dry_run", "", "", "print the variables and the command, and start nothing",
             set<intoYesNo, &ExecOptions::dry_run>},
};
constexpr auto kExecAbout =
    "Start a program with the variables of `viaduct env`.\n\n"
    "The program takes the place of this process, so signals and exit codes pass. Limits for "
    "locked memory and open files are raised as far as permitted. A variable that is set already "
    "stays. The variables are also written to $XDG_RUNTIME_DIR/viaduct/env, or without that folder "
    "to /run/viaduct/env, so that later shells of the container can source them.";
constexpr auto kExecMore =
    "Exit codes: the program's own; 126 if it cannot be run, or --require or --nixl is not met; "
    "127 "
    "if there is no such program; 2 if the command line is wrong.\n\n"
    "Examples:\n"
    "  Start a server on the devices of this pod:\n"
    "    viaduct exec -- vllm serve MODEL\n"
    "  Start it only if it can use RDMA:\n"
    "    viaduct exec --require rdma -- vllm serve MODEL\n"
    "  Run Dynamo's block manager over Viaduct:\n"
    "    viaduct exec --nixl -- python -m dynamo.vllm --model MODEL\n"
    "  See what would be done:\n"
    "    viaduct exec --dry-run -- vllm serve MODEL\n"
    "  Get the same variables in a shell of `kubectl exec`:\n"
    "    . /run/viaduct/env";

}  // namespace

Command execCommand() {
  return commandOf<ExecOptions>({.name = "viaduct exec",
                                 .about = kExecAbout,
                                 .more = kExecMore,
                                 .flags = kExecFlags,
                                 .run = runExec});
}

}  // namespace viaduct::app
