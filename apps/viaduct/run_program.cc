#include "viaduct/run_program.h"

#include <cstdio>
#include <exception>

#include "viaduct/remarks.h"

namespace viaduct::app {

int runProgram(int (*run)(int, char**), int argc, char** argv) {
  try {
    const int code = run(argc, argv);
    // Buffered output may fail only here. A failed command has already printed its own error.
    const bool printed = std::fflush(stdout) == 0 && std::ferror(stdout) == 0;
    if (code != kExitOk || printed) return code;
    return fail("standard output could not be written", kExitFailed);
  } catch (const std::exception& e) {  // the standard library throws
    std::fprintf(stderr, "viaduct: %s\n", e.what());
  } catch (...) {
    std::fputs("viaduct: unknown exception\n", stderr);
  }
  return kExitFailed;
}

bool asksForVersion(const std::string& word) { return word == "--version" || word == "-V"; }

}  // namespace viaduct::app
