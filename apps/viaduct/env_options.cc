#include <CLI/CLI.hpp>
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "base/sizes.h"
#include "viaduct/cli_value.h"
#include "viaduct/env.h"

namespace viaduct::app {
namespace {

constexpr base::Words<EnvFormat, 3> kFormats{
    {{"sh", EnvFormat::kSh}, {"json", EnvFormat::kJson}, {"k8s", EnvFormat::kK8s}}};
constexpr std::uint64_t kMostProcess = std::uint64_t{1} << 22U;  // the kernel's highest process ID

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

void declareEnv(CLI::App& app, EnvOptions& options) {
  CLI::App& env = *app.add_subcommand("env", kEnvAbout);
  env.footer(kEnvMore);
  addValue(
      env, "--format", "sh|json|k8s",
      [&options](const std::string& text) { return intoOneOf(text, kFormats, options.format); },
      "Shell commands, JSON, or the env of a container in YAML [sh]");
  addValue(
      env, "--from", "PID",
      [&options](const std::string& text) -> Status {
        const auto process = base::parseCount(text);
        if (!process || *process == 0 || *process > kMostProcess)
          return wrongValue("\"" + text + "\" is not a process ID", {});
        options.from = static_cast<std::uint32_t>(*process);
        return Ok{};
      },
      "Process whose variables count [this one]");
  env.add_option("--root", options.root, "Folder with the node's /sys and /proc [/]")
      ->type_name("DIR");
}

}  // namespace viaduct::app
