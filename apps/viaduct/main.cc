// The command line: reads it, and hands over to one subcommand.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/nearest.h"
#include "viaduct/commands.h"
#include "viaduct/doctor.h"
#include "viaduct/env.h"
#include "viaduct/exec.h"
#include "viaduct/help_text.h"
#include "viaduct/meet.h"
#include "viaduct/p2p.h"
#include "viaduct/remarks.h"
#include "viaduct/top.h"
#include "viaduct/version.h"

namespace {

using namespace viaduct::app;

using Words = std::vector<std::string>;

// CLI11 breaks no line by itself.
class NarrowHelp : public CLI::Formatter {
  std::string make_description(const CLI::App* app) const override {
    return wrapText(CLI::Formatter::make_description(app)) + "\n";
  }
  std::string make_footer(const CLI::App* app) const override {
    return wrapText(CLI::Formatter::make_footer(app));
  }
  std::string make_option(const CLI::Option* option, bool is_positional) const override {
    return helpEntry(make_option_name(option, is_positional) + make_option_opts(option),
                     make_option_desc(option));
  }
  // The first line of the description.
  std::string make_subcommand(const CLI::App* command) const override {
    const std::string about = command->get_description();
    return helpEntry(command->get_name(), about.substr(0, about.find('\n')));
  }
};

bool asksForVersion(const std::string& word) { return word == "--version" || word == "-V"; }

int printVersion() {
  fmt::print("{}", versionText());
  return kExitOk;
}

// `help bench` is `bench --help`, and `version` is `--version`.
Words asFlags(Words words) {
  if (words.empty()) return words;
  if (words[0] == "help") {
    words.erase(words.begin());
    if (words.empty() || words[0] != "--help") words.emplace_back("--help");
  } else if (words.size() == 1 && words[0] == "version") {
    words[0] = "--version";
  }
  return words;
}

// Names a word that is no subcommand, and the subcommand that was most likely meant.
std::optional<std::string> unknownCommand(const Words& words, const CLI::App& app) {
  if (words.empty() || words[0].starts_with('-')) return std::nullopt;
  std::vector<std::string> names;
  for (const CLI::App* one : app.get_subcommands(nullptr)) names.push_back(one->get_name());
  if (std::find(names.begin(), names.end(), words[0]) != names.end()) return std::nullopt;
  const std::string near = viaduct::base::nearest(words[0], names);
  return fmt::format("there is no command \"{}\"; {}", words[0],
                     near.empty()
                         ? fmt::format("what to do: name one of {}", fmt::join(names, ", "))
                         : fmt::format("did you mean {}?", near));
}

int run(int argc, char** argv) {
  const Words typed(argv + 1, argv + argc);
  if (typed.size() == 1 && asksForVersion(typed[0])) return printVersion();
  if (std::filesystem::path(argv[0]).filename() == "nixlbench") return runBench(typed, true);
  Words words = asFlags(typed);
  ExecOptions exec;
  takeCommand(words, exec);
  if ((words.size() == 1 && asksForVersion(words[0])) ||
      (words.size() == 2 && asksForVersion(words[1])))
    return printVersion();
  if (!words.empty() && words[0] == "bench")
    return runBench({words.begin() + 1, words.end()}, false);
  if (!words.empty() && words[0] == "suite") return runSuite({words.begin() + 1, words.end()});
  CLI::App app("Moves memory blocks between processes and hosts, and measures how fast they move.",
               "viaduct");
  app.formatter(std::make_shared<NarrowHelp>());
  app.set_version_flag("-V,--version", versionText);
  app.require_subcommand(0, 1);  // none is answered below: here it would hide a wrong word

  CompareCommand compare;
  declareCompare(app, compare);
  DoctorCommand doctor;
  declareDoctor(app, doctor);
  EnvOptions env;
  declareEnv(app, env);
  declareExec(app, exec);
  MeetOptions meet;
  declareMeet(app, meet);
  P2pOptions p2p;
  declareP2p(app, p2p);
  ReportCommand report;
  declareReport(app, report);
  TopOptions top;
  declareTop(app, top);
  // Answered above: their flags are read as gflags reads them. Here they are for --help.
  app.add_subcommand("bench", "Measure transfers between workers.");
  app.add_subcommand("suite", "Find out whether an optimisation helps.");
  bool markdown = false;
  CLI::App* settings = app.add_subcommand(
      "settings", "Print the VIADUCT_* variables with their defaults and meaning.");
  settings->add_flag("--markdown", markdown, "Print the page docs/settings.md");
  // Turned into flags above. Here they are for --help.
  app.add_subcommand("help", "Print the help of a command, as in `viaduct help bench`.");
  app.add_subcommand("version", "Print the versions of viaduct and of the loaded libraries.");

  if (const auto wrong = unknownCommand(words, app)) return fail(*wrong, kExitUsage);
  try {
    app.parse(Words(words.rbegin(), words.rend()));  // CLI11 takes them from the back
  } catch (const CLI::ParseError& e) {
    if (app.exit(e) == 0) return kExitOk;
    return !words.empty() && words[0] == "doctor" ? static_cast<int>(kExitNoDiagnosis) : kExitUsage;
  }
  if (app.get_subcommands().empty()) {
    std::cerr << app.help();
    return kExitUsage;
  }
  if (app.got_subcommand("compare")) return runCompare(compare);
  if (app.got_subcommand("doctor")) return runDoctor(doctor);
  if (app.got_subcommand("env")) return runEnv(env);
  if (app.got_subcommand("exec")) return runExec(exec);
  if (app.got_subcommand("meet")) return runMeet(meet);
  if (app.got_subcommand("p2p")) return runP2p(p2p);
  if (app.got_subcommand("report")) return runReport(report);
  if (app.got_subcommand("top")) return runTop(top);
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
