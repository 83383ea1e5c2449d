// The command line: reads it, and hands over to one subcommand.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <iostream>
#include <string>
#include <vector>

#include "viaduct/commands.h"
#include "viaduct/meet.h"
#include "viaduct/p2p.h"

namespace {

using namespace viaduct::app;

int run(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  if (std::filesystem::path(argv[0]).filename() == "nixlbench") return runBench(words, true);
  if (!words.empty() && words[0] == "bench")
    return runBench({words.begin() + 1, words.end()}, false);
  if (!words.empty() && words[0] == "suite") return runSuite({words.begin() + 1, words.end()});
  CLI::App app("Moves memory blocks between processes and hosts, and measures how well.",
               "viaduct");
  app.set_version_flag("--version", "viaduct " VIADUCT_VERSION);
  app.require_subcommand(0, 1);  // none is answered below: here it would hide a wrong word

  CompareCommand compare;
  declareCompare(app, compare);
  MeetOptions meet;
  declareMeet(app, meet);
  P2pOptions p2p;
  declareP2p(app, p2p);
  ReportCommand report;
  declareReport(app, report);
  // Answered above: their flags are read as gflags reads them. Here they are for --help.
  app.add_subcommand("bench", "Measure transfers between workers: see viaduct bench --help.");
  app.add_subcommand("suite", "Does this optimisation help? See viaduct suite --help.");
  bool markdown = false;
  CLI::App* settings =
      app.add_subcommand("settings", "Print the VIADUCT_* variables, their defaults and meaning.");
  settings->add_flag("--markdown", markdown, "As the page docs/settings.md.");

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? kExitOk : kExitUsage;
  }
  if (app.get_subcommands().empty()) {
    std::cerr << app.help();
    return kExitUsage;
  }
  if (app.got_subcommand("compare")) return runCompare(compare);
  if (app.got_subcommand("meet")) return runMeet(meet);
  if (app.got_subcommand("p2p")) return runP2p(p2p);
  if (app.got_subcommand("report")) return runReport(report);
  return runSettings(markdown);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const int code = run(argc, argv);
    // The last of what is printed is only written here; another failure was said already.
    const bool printed = std::fflush(stdout) == 0 && std::ferror(stdout) == 0;
    if (code != kExitOk || printed) return code;
    std::fputs("viaduct: standard output could not be written\n", stderr);
    return kExitFailed;
  } catch (const std::exception& e) {  // CLI11's and the standard library's: none of ours throws
    std::fprintf(stderr, "viaduct: %s\n", e.what());
  } catch (...) {
    std::fputs("viaduct: unknown exception\n", stderr);
  }
  return kExitFailed;
}
