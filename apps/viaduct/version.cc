#include "viaduct/version.h"

#include <fmt/format.h>
#include <gnu/libc-version.h>
#include <sys/utsname.h>
#include <viaduct/backend.h>
#include <viaduct/settings.h>

#include <array>
#include <utility>

#include "base/json.h"
#include "viaduct/bench_values.h"
#include "viaduct/command_line.h"
#include "viaduct/commands.h"

namespace viaduct::app {

measure::Build thisBuild() {
  return {.version = VIADUCT_VERSION, .commit = std::string(gitCommit())};
}

std::string versionText() {
  std::string out = fmt::format("viaduct {}", VIADUCT_VERSION);
  if (!gitCommit().empty()) out += fmt::format(" (git {})", gitCommit());
  out += "\nbackends: ";
  std::string_view comma;
  for (const std::string_view name : builtInBackends()) {
    if (backendFacts(name)->for_tests) continue;
    const std::string library = backendLibrary(name);
    out += fmt::format("{}{}", std::exchange(comma, ", "), name);
    if (!library.empty()) out += fmt::format(" ({})", library);
  }
  return out + "\n";
}

namespace {

struct VersionOptions {
  bool json = false;
};

base::Json versionJson() {
  base::Json backends = base::Json::array();
  for (const std::string_view name : builtInBackends())
    if (!backendFacts(name)->for_tests)
      backends.push_back({{"name", name}, {"library", backendLibrary(name)}});
  utsname system{};
  ::uname(&system);
  return {{"version", VIADUCT_VERSION},     {"commit", gitCommit()},
          {"compiler", __VERSION__},        {"libc", ::gnu_get_libc_version()},
          {"kernel", system.release},       {"machine", system.machine},
          {"backends", std::move(backends)}};
}

int runVersion(const VersionOptions& options) {
  fmt::print("{}", options.json ? base::dumpJson(versionJson(), 2) + "\n" : versionText());
  return kExitOk;
}

constexpr std::array kVersionFlags{
    Flag<VersionOptions>{
        "json", "", "",
        "print JSON, with the compiler, the C library and the kernel: for a report "
        "of a fault",
        set<intoYesNo, &VersionOptions::json>},
};

}  // namespace

Command versionCommand() {
  return commandOf<VersionOptions>(
      {.name = "viaduct version",
       .about = "Print the versions of viaduct and of the loaded libraries.",
       .more = "Exit codes: 0; 2 if the command line is wrong.\n\n"
               "Example:\n  viaduct version --json",
       .flags = kVersionFlags,
       .run = runVersion});
}

}  // namespace viaduct::app
