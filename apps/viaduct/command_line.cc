#include "viaduct/command_line.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <iostream>
#include <memory>
#include <utility>

#include "base/nearest.h"
#include "viaduct/bench_options.h"
#include "viaduct/bench_values.h"
#include "viaduct/generated_files.h"
#include "viaduct/help_text.h"
#include "viaduct/suite_options.h"
#include "viaduct/version.h"

namespace viaduct::app {
namespace {

// Wraps help texts, because CLI11 does not.
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
  // Shows only the first line of each subcommand's description.
  std::string make_subcommand(const CLI::App* command) const override {
    const std::string about = command->get_description();
    return helpEntry(command->get_name(), about.substr(0, about.find('\n')));
  }
};

// Returns the first line of a description, and the text after the empty line.
std::pair<std::string, std::string> split(const std::string& description) {
  const auto end = description.find("\n\n");
  return {description.substr(0, end), end == std::string::npos ? "" : description.substr(end + 2)};
}

PageEntry entryOf(const CLI::Option& option) {
  PageEntry entry{.about = option.get_description()};
  if (option.get_positional()) entry.names.push_back(option.get_name());
  for (const std::string& name : option.get_snames()) entry.names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) entry.names.push_back("--" + name);
  if (option.get_items_expected_max() > 0)
    entry.form = option.get_type_name() == "TEXT" && option.get_positional()
                     ? option.get_name()
                     : option.get_type_name();
  return entry;
}

CommandPage pageOf(const CLI::App& app, const std::string& name) {
  auto [summary, about] = split(app.get_description());
  CommandPage page{.name = name, .summary = summary, .about = about, .more = app.get_footer()};
  PageSection arguments{.title = "Arguments"}, options{.title = "Options"};
  page.usage = name + " [OPTIONS]";
  for (const CLI::Option* option : app.get_options()) {
    (option->get_positional() ? arguments : options).entries.push_back(entryOf(*option));
    if (option->get_positional()) page.usage += " " + option->get_name();
  }
  for (const CLI::App* command : app.get_subcommands(nullptr))
    page.commands.push_back(pageOf(*command, name + " " + command->get_name()));
  if (!page.commands.empty()) page.usage += " [COMMAND]";
  if (!arguments.entries.empty()) page.sections.push_back(std::move(arguments));
  page.sections.push_back(std::move(options));
  return page;
}

}  // namespace

CommandLine::CommandLine(ExecOptions exec)
    : app_("Moves memory blocks between processes and hosts, and measures how fast they move.",
           "viaduct"),
      exec_(std::move(exec)) {
  app_.formatter(std::make_shared<NarrowHelp>());
  app_.set_version_flag("-V,--version", versionText);
  // Without a subcommand, run() prints the help. An error here would hide a wrong word.
  app_.require_subcommand(0, 1);
  declareCompare(app_, compare_);
  declareDoctor(app_, doctor_);
  declareEnv(app_, env_);
  declareExec(app_, exec_);
  declareMeet(app_, meet_);
  declareP2p(app_, p2p_);
  declareReport(app_, report_);
  declareTop(app_, top_);
  // main() has already handled these commands, whose flags are parsed as gflags does. They are
  // declared for --help.
  app_.add_subcommand("bench", benchPage(false).summary);
  app_.add_subcommand("suite", suitePage().summary);
  CLI::App* settings = app_.add_subcommand(
      "settings", "Print the VIADUCT_* variables with their defaults and meaning.");
  settings->add_flag("--markdown", markdown_, "Print the page docs/settings.md");
  CLI::App* completion =
      app_.add_subcommand("completion",
                          "Print the completion of a shell.\n\nInstalled packages have it already. "
                          "Otherwise, in bash:\n\n  source <(viaduct completion bash)");
  completion->add_option("SHELL", shell_, "The shell")->required()->type_name("bash|zsh|fish");
  // main() has already turned these words into flags. They are declared for --help.
  app_.add_subcommand("help", "Print the help of a command, as in `viaduct help bench`.");
  app_.add_subcommand("version", "Print the versions of viaduct and of the loaded libraries.");
}

std::optional<std::string> CommandLine::unknownCommand(
    const std::vector<std::string>& words) const {
  if (words.empty() || words[0].starts_with('-')) return std::nullopt;
  std::vector<std::string> names;
  for (const CLI::App* one : app_.get_subcommands(nullptr)) names.push_back(one->get_name());
  if (std::find(names.begin(), names.end(), words[0]) != names.end()) return std::nullopt;
  const std::string near = base::nearest(words[0], names);
  return fmt::format("there is no command \"{}\"; {}", words[0],
                     near.empty()
                         ? fmt::format("what to do: name one of {}", fmt::join(names, ", "))
                         : fmt::format("did you mean {}?", near));
}

std::optional<int> CommandLine::parse(const std::vector<std::string>& words) {
  try {
    // CLI11 expects the words in reverse order.
    app_.parse(std::vector<std::string>(words.rbegin(), words.rend()));
  } catch (const CLI::ParseError& e) {
    if (app_.exit(e) == 0) return kExitOk;
    return !words.empty() && words[0] == "doctor" ? static_cast<int>(kExitNoDiagnosis) : kExitUsage;
  }
  if (!app_.get_subcommands().empty()) return std::nullopt;
  std::cerr << app_.help();
  return kExitUsage;
}

int CommandLine::run() const {
  if (app_.got_subcommand("compare")) return runCompare(compare_);
  if (app_.got_subcommand("doctor")) return runDoctor(doctor_);
  if (app_.got_subcommand("env")) return runEnv(env_);
  if (app_.got_subcommand("exec")) return runExec(exec_);
  if (app_.got_subcommand("meet")) return runMeet(meet_);
  if (app_.got_subcommand("p2p")) return runP2p(p2p_);
  if (app_.got_subcommand("report")) return runReport(report_);
  if (app_.got_subcommand("top")) return runTop(top_);
  if (app_.got_subcommand("completion")) return printCompletion(page(), shell_);
  return runSettings(markdown_);
}

CommandPage CommandLine::page() const {
  CommandPage page = pageOf(app_, "viaduct");
  for (CommandPage& command : page.commands)
    for (CommandPage& own : std::array{benchPage(false), suitePage()})
      if (command.name == own.name) command = own;
  page.more =
      "Each command has a page of its own, such as viaduct-bench(1). Variables of the environment "
      "named VIADUCT_* configure every command. `viaduct settings` lists them.";
  return page;
}

}  // namespace viaduct::app
