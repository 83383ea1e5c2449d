#include "viaduct/env.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdio>
#include <utility>

#include "base/json.h"
#include "diag/environ.h"
#include "diag/libraries.h"
#include "diag/snapshot.h"
#include "diag/variable_checks.h"
#include "measure/result/text.h"
#include "viaduct/bench_values.h"
#include "viaduct/command_line.h"
#include "viaduct/remarks.h"

namespace viaduct::app {
namespace {

Error unreadable(std::uint32_t process, const diag::FileText& file) {
  const std::string name = fmt::format("/proc/{}/environ", process);
  if (file.state == diag::FileText::State::kAbsent)
    return {.code = Code::kNotFound,
            .operation = "--from",
            .detail = fmt::format("there is no process {}", process)};
  return {.code = Code::kDenied,
          .operation = "--from",
          .detail = file.reason,
          .file = name,
          .cause = "the file is for root and for the user of that process",
          .remedy = "run the command as that user or as root"};
}

// True for a name that a shell can assign.
bool isShellName(std::string_view name) {
  const auto fits = [](unsigned char c) { return std::isalnum(c) != 0 || c == '_'; };
  return !name.empty() && std::isdigit(static_cast<unsigned char>(name[0])) == 0 &&
         std::all_of(name.begin(), name.end(), fits);
}

// Returns a comment line. Control characters of the text become question marks, so that it cannot
// continue on another line.
std::string comment(std::string text) {
  std::replace_if(
      text.begin(), text.end(), [](unsigned char c) { return std::iscntrl(c) != 0; }, '?');
  return fmt::format("# {}\n", text);
}

std::string comments(const diag::Advice& advice) {
  std::string out = comment(advice.devices);
  if (!advice.absent.empty()) out += comment(fmt::format("Note: {}.", advice.absent));
  for (const std::string& one : advice.remarks) out += comment("Note: " + one);
  return out;
}

std::string leftUnset(const diag::Advice& advice) {
  std::string out;
  for (const diag::UnsetVariable& one : advice.unset)
    out += comment(fmt::format("{} stays unset: {}", one.name, one.reason));
  return out;
}

base::Json jsonOf(const diag::Advice& advice, const std::vector<EnvVariable>& variables) {
  base::Json out{{"format", "viaduct-env/1"}, {"summary", advice.devices}};
  out["devices"] = base::Json::array();
  for (const auto* const devices : {&advice.pod.efa, &advice.pod.verbs})
    for (const diag::RdmaDevice& one : *devices)
      out["devices"].push_back({{"name", one.name}, {"pci", one.pci}});
  out["certain"] = advice.pod.given.certain();
  out["remarks"] = advice.remarks;
  if (!advice.absent.empty()) out["absent"] = advice.absent;
  out["variables"] = base::Json::array();
  for (const EnvVariable& one : variables)
    out["variables"].push_back({{"name", one.name},
                                {"value", one.value},
                                {"reason", one.reason},
                                {"kept", one.kept},
                                {"differs_by_pod", one.differs}});
  out["unset"] = base::Json::array();
  for (const diag::UnsetVariable& one : advice.unset)
    out["unset"].push_back({{"name", one.name}, {"reason", one.reason}});
  return out;
}

// Returns the `env` part of a container in a manifest. JSON texts are valid YAML.
std::string manifest(const diag::Advice& advice, const std::vector<EnvVariable>& variables) {
  std::string out = comments(advice) + "env:\n", rest;
  for (const EnvVariable& one : variables)
    if (one.differs)
      rest += fmt::format("# {} differs in each pod.\n", one.name);
    else
      out += fmt::format("{}- name: {}\n  value: {}\n", comment(one.reason),
                         base::dumpJson(one.name, -1), base::dumpJson(one.value, -1));
  if (!rest.empty())
    rest += "# Set it in the pod: start the program by `viaduct exec -- COMMAND`.\n";
  return out + rest + leftUnset(advice);
}

}  // namespace

Result<diag::Node> nodeAt(const std::string& root, std::optional<std::uint32_t> from) {
  constexpr std::size_t kMostEnvironment = std::size_t{4} << 20U;
  auto opened = diag::nodeIn(root);
  if (!opened) {
    Error error = opened.error();
    error.operation = "--root";
    error.remedy = "name a folder that holds the node's /sys and /proc";
    return error;
  }
  diag::Node out = *std::move(opened);
  if (from) {
    const diag::FileText text =
        out.tree.readBytes(fmt::format("/proc/{}/environ", *from), kMostEnvironment);
    if (!text) return unreadable(*from, text);
    out.variables = diag::variablesIn(text.text);
    out.variables_from = fmt::format("process {}", *from);
  } else if (out.variables_from.empty()) {  // a snapshot brings its own variables
    out.variables = diag::ownVariables();
    out.variables_from = "this process";
  }
  if (out.tree.live()) out.live.libraries = diag::findNccl(out.tree, out.variables);
  return out;
}

std::vector<EnvVariable> environmentFor(const diag::Advice& advice, const diag::Variables& own,
                                        bool force) {
  std::vector<EnvVariable> out;
  for (const diag::AdvisedVariable& one : advice.set) {
    const auto mine = own.find(one.name);
    if (force || mine == own.end() || mine->second.empty() || mine->second == one.value)
      out.push_back({one.name, one.value, one.reason, false, one.differs});
    else
      out.push_back({one.name, mine->second,
                     fmt::format("Kept as it was. The advice is {}.", one.value), true,
                     one.differs});
  }
  for (const auto& mine : own) {
    const auto same = [&](const EnvVariable& one) { return one.name == mine.first; };
    if (diag::isTransportVariable(mine.first) && isShellName(mine.first) &&
        std::none_of(out.begin(), out.end(), same))
      out.push_back({mine.first, mine.second, "Already set.", true, false});
  }
  return out;
}

std::string singleQuoted(std::string_view text) {
  return fmt::format("'{}'", measure::replaceAll(std::string(text), "'", "'\\''"));
}

std::string shellText(const diag::Advice& advice, const std::vector<EnvVariable>& variables) {
  std::string out = comments(advice), before;
  for (const EnvVariable& one : variables) {
    if (one.reason != before) out += comment(one.reason);
    before = one.reason;
    out += fmt::format("export {}={}\n", one.name, singleQuoted(one.value));
  }
  return out + leftUnset(advice);
}

namespace {

enum class EnvFormat : std::uint8_t { kSh, kJson, kK8s };
constexpr base::Words<EnvFormat, 3> kFormats{
    {{"sh", EnvFormat::kSh}, {"json", EnvFormat::kJson}, {"k8s", EnvFormat::kK8s}}};

struct EnvOptions {
  EnvFormat format = EnvFormat::kSh;
  std::optional<std::uint32_t> from = {};  // a process ID
  std::string root = "/";
};

Status intoProcess(std::string_view text, std::uint32_t& into) {
  constexpr std::uint64_t kMost = std::uint64_t{1} << 22U;  // the kernel's highest process ID
  const auto process = countIn(text, 1, kMost);
  if (!process) return wrongValue(fmt::format("\"{}\" is not a process ID", text), {});
  into = static_cast<std::uint32_t>(*process);
  return Ok{};
}

int runEnv(const EnvOptions& options) {
  const auto node = nodeAt(options.root, options.from);
  if (!node) return fail(node.error().text(), kExitFailed);
  const diag::Advice advice = diag::adviceFor(*node);
  // This process's own variables already apply. The variables of another process are printed too.
  const auto variables =
      environmentFor(advice, options.from ? node->variables : diag::Variables{}, false);
  const bool shell = options.format == EnvFormat::kSh, json = options.format == EnvFormat::kJson;
  fmt::print("{}", shell  ? shellText(advice, variables)
                   : json ? base::dumpJson(jsonOf(advice, variables), 2) + "\n"
                          : manifest(advice, variables));
  return kExitOk;
}

using EnvFlag = Flag<EnvOptions>;
constexpr std::array kEnvFlags{
    EnvFlag{"format", "sh|json|k8s", "sh",
            "shell commands, JSON, or the env of a container in YAML",
            oneOf<kFormats, &EnvOptions::format>},
    EnvFlag{"from", "PID", "this one", "process whose variables count",
            set<intoProcess, &EnvOptions::from>},
    EnvFlag{"root", "DIR", "/", "folder with the node's /sys and /proc",
            set<intoText, &EnvOptions::root>},
};
constexpr auto kEnvAbout =
    "Print the variables that make NCCL, UCX and libfabric use this pod's RDMA devices.\n\n"
    "The devices are those that the SR-IOV device plugin names in PCIDEVICE_*. Without these "
    "variables, they are the devices in /dev/infiniband, or all with an active port. Each "
    "variable has its reason as a comment. Variables that a library chooses better itself stay "
    "unset.";
constexpr auto kEnvMore =
    "--from PID also prints the variables of NCCL, UCX, libfabric and NIXL that the process has. "
    "Its values win over the advice. A shell of `kubectl exec` lacks variables that a wrapper set "
    "in process 1.\n\n"
    "Exit codes: 0 if the variables were printed; 1 if --from or --root cannot be read; 2 if the "
    "command line is wrong.\n\n"
    "Examples:\n"
    "  Show the variables and their reasons:\n"
    "    viaduct env\n"
    "  Set them in this shell:\n"
    "    eval \"$(viaduct env)\"\n"
    "  Set what the container's program has:\n"
    "    eval \"$(viaduct env --from 1)\"\n"
    "  Print the part of a manifest:\n"
    "    viaduct env --format k8s";

}  // namespace

Command envCommand() {
  return commandOf<EnvOptions>({.name = "viaduct env",
                                .about = kEnvAbout,
                                .more = kEnvMore,
                                .flags = kEnvFlags,
                                .run = runEnv});
}

}  // namespace viaduct::app
