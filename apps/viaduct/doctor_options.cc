#include <CLI/CLI.hpp>

#include "viaduct/doctor.h"

namespace viaduct::app {
namespace {

constexpr auto kAbout =
    "Find out what keeps this node from fast transfers.\n\n"
    "The doctor looks at RDMA devices, PCIe, IOMMU, GPUs, limits, networks, libraries and "
    "variables. Each finding has its evidence, its cause and the exact fix. The doctor changes "
    "nothing.\n\n"
    "It needs no privileges. As root it sees more: the kernel log and PCI access control.";
constexpr auto kMore =
    "Exit codes: 0 if nothing is wrong; 1 if there are warnings, or facts that could not be looked "
    "at; 2 if something will not work; 3 if the command line is wrong or the doctor failed.\n\n"
    "Examples:\n"
    "  viaduct doctor\n"
    "  viaduct doctor --only rdma,iommu --json\n"
    "  kubectl logs prefill-0 | viaduct doctor --explain -\n"
    "  viaduct doctor --listen 192.168.1.100     # on one host\n"
    "  viaduct doctor --peer 192.168.1.100       # on the other\n"
    "  viaduct doctor snapshot -o node.tar.gz\n"
    "  viaduct doctor --root node.tar.gz";

}  // namespace

void declareDoctor(CLI::App& app, DoctorCommand& command) {
  CLI::App& doctor = *app.add_subcommand("doctor", kAbout);
  doctor.footer(kMore);
  CLI::Option& root =
      *doctor
           .add_option("--root", command.root, "Diagnose the node in this folder or snapshot [/]")
           ->type_name("PATH");
  doctor.add_option("--only", command.only, "Look at these topics only; --list names them")
      ->delimiter(',')
      ->type_name("TOPIC,...");
  doctor.add_flag("--node", command.node,
                  "Diagnose the node for all its pods: leave out the limits, variables, libraries "
                  "and device files of this container");
  doctor.add_flag("--list", command.list, "List the topics");
  doctor.add_flag("--json", command.json, "Print JSON");
  doctor.add_flag("-v,--verbose", command.verbose, "Also print each fact that is in order");
  doctor.add_flag("--card", command.card, "Print the facts of this node as a Markdown table");
  doctor
      .add_option("--resolve", command.names,
                  "Also look up these host names, besides those of the meeting place")
      ->delimiter(',')
      ->type_name("HOST,...");
  doctor
      .add_option("--explain", command.explain,
                  "Explain the known error texts in this log; - reads standard input")
      ->type_name("FILE");
  CLI::Option& listen =
      *doctor
           .add_option(
               "--listen", command.listen,
               "Then wait here for the doctor of another host, at this address of this host "
               "[port 5555]")
           ->type_name("IP[:PORT]");
  CLI::Option& peer =
      *doctor
           .add_option(
               "--peer", command.peer,
               "Also read the diagnosis of the doctor that listens there, and measure the path")
           ->type_name("IP[:PORT]");
  doctor.add_option("--secret", command.secret, "Secret that --listen and --peer share")
      ->type_name("WORD");
  root.excludes(&listen)->excludes(&peer);  // a path can only be measured on a running machine
  listen.excludes(&peer);
  CLI::App& snapshot = *doctor.add_subcommand(
      "snapshot",
      "Copy what the doctor looks at into one file.\n\nThe file holds small files of the kernel "
      "and the variables about transfers, without passwords and tokens. `viaduct doctor --root "
      "FILE` diagnoses it on another machine; `tar tzf FILE` lists it.");
  snapshot.footer("Example:\n  viaduct doctor snapshot -o node.tar.gz");
  snapshot.add_option("-o,--output", command.snapshot_to, "The file to write")
      ->required()
      ->type_name("FILE");
  snapshot.callback([&command] { command.snapshot = true; });
}

}  // namespace viaduct::app
