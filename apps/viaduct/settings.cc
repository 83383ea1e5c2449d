#include <fmt/format.h>
#include <viaduct/settings.h>

#include <array>

#include "base/environment.h"
#include "measure/result/text.h"
#include "viaduct/bench_values.h"
#include "viaduct/command_line.h"

namespace viaduct::app {
namespace {

constexpr auto kLogHelp =
    "Least severe messages to write to stderr: debug, info, warning, error or off. In Python they "
    "go to the logger \"viaduct\".";
constexpr auto kPage =
    "# Settings\n\n"
    "<!-- Generated: viaduct settings --markdown > docs/settings.md -->\n\n"
    "Every setting is a field of `viaduct::Settings` and an environment variable. The command "
    "line,\n"
    "`Agent::open()` and `settingsFromEnvironment()` read the variables. `Agent::open(settings)` "
    "takes\n"
    "exactly the settings that it is given. An unset or empty variable leaves the default.\n\n"
    "A program with other rights than its user (setuid, setgid or file capabilities) ignores these "
    "variables,\n"
    "`HOME` and the variables of proxies. UCX, libfabric and CUDA's driver still read their own "
    "variables.\n"
    "Such a program calls `clearenv()` before it opens an agent.\n\n"
    "Durations are written `2s`, `500ms`, `20us`; sizes `64MiB`, `4K`, `1MB` (10^6).\n\n"
    "| variable | default | meaning |\n"
    "|---|---|---|\n";

void printMarkdown() {
  fmt::print("{}", kPage);
  const auto row = [](std::string_view variable, std::string_view fallback, std::string_view help) {
    fmt::print("| `{}` | {} | {} |\n", variable,
               fallback.empty() ? "" : fmt::format("`{}`", fallback), help);
  };
  for (const SettingRow& setting : settingRows())
    row(setting.variable, setting.fallback, setting.help);
  row("VIADUCT_LOG", "warning", kLogHelp);
}

void printPlain() {
  const auto row = [](std::string_view variable, std::string_view fallback, std::string_view help) {
    fmt::print("{}{}{}\n{}", variable, fallback.empty() ? "" : "=", fallback,
               measure::wrapped(std::string(help), 4));
  };
  for (const SettingRow& setting : settingRows())
    row(setting.variable, setting.fallback, setting.help);
  row("VIADUCT_LOG", "warning", kLogHelp);
}

struct SettingsOptions {
  bool markdown = false;
};
constexpr std::array kSettingsFlags{
    Flag<SettingsOptions>{"markdown", "", "", "print the page docs/settings.md",
                          set<intoYesNo, &SettingsOptions::markdown>}};

int runSettings(const SettingsOptions& options) {
  options.markdown ? printMarkdown() : printPlain();
  return kExitOk;
}

}  // namespace

Command settingsCommand() {
  return commandOf<SettingsOptions>(
      {.name = "viaduct settings",
       .about = "Print the VIADUCT_* variables with their defaults and meaning.",
       .flags = kSettingsFlags,
       .run = runSettings});
}

Result<Settings> measuringSettings() {
  auto settings = settingsFromEnvironment();
  if (settings && base::environmentOf("VIADUCT_POPULATE=").empty()) settings->populate = 0;
  return settings;
}

}  // namespace viaduct::app
