// `viaduct-doctor`: the doctor, `env` and `exec` as one static file, for containers without
// Viaduct.
#include <nss.h>

#include <string>

#include "viaduct/command_line.h"
#include "viaduct/command_names.h"
#include "viaduct/run_program.h"

namespace {

using namespace viaduct::app;

int run(int argc, char** argv) {
  CommandWords typed(argv + 1, argv + argc);
  // The container's nsswitch.conf may name modules, which the C library of a static program cannot
  // load.
  ::__nss_configure_lookup("hosts", "files dns");
  becomeDoctorFile();
  if (typed.size() == 1 && asksForVersion(typed[0])) typed = {"version"};
  return doctorCommand({envCommand(), execCommand(), versionCommand()}).run(typed);
}

}  // namespace

int main(int argc, char** argv) { return runProgram(run, argc, argv); }
