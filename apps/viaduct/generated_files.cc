#include "viaduct/generated_files.h"

#include <fmt/format.h>

#include <array>
#include <filesystem>
#include <fstream>

#include "viaduct/bench_values.h"
#include "viaduct/command_line.h"
#include "viaduct/nixlbench.h"
#include "viaduct/remarks.h"

namespace viaduct::app {
namespace {

using Completion = std::string (*)(const CommandPage&, std::span<const CommandPage>);
struct Shell {
  std::string_view name;
  Completion completion;
};
constexpr std::array<Shell, 3> kShells{
    {{"bash", bashCompletion}, {"zsh", zshCompletion}, {"fish", fishCompletion}}};

// Returns the pages of other programs than `viaduct`.
std::array<CommandPage, 1> otherPages() { return {nixlbenchPage()}; }

bool write(const std::filesystem::path& file, const std::string& text) {
  std::ofstream out(file);
  out << text;
  out.close();
  return out.good();
}

bool writeManual(const std::filesystem::path& folder, const CommandPage& page) {
  bool written = write(folder / (pageName(page) + ".1"), manPage(page));
  for (const CommandPage& command : page.commands) written &= writeManual(folder, command);
  return written;
}

struct CompletionOptions {
  std::string shell = {};
};
constexpr std::array kCompletionFlags{
    Flag<CompletionOptions>{"SHELL", "bash|zsh|fish", "required", "bash, zsh or fish",
                            set<intoText, &CompletionOptions::shell>}};

int printCompletion(const CompletionOptions& options) {
  for (const Shell& one : kShells)
    if (one.name == options.shell) {
      fmt::print("{}", one.completion(viaductCommand().page(), otherPages()));
      return kExitOk;
    }
  return fail(
      fmt::format("there is no completion for \"{}\"; name bash, zsh or fish", options.shell),
      kExitUsage);
}

}  // namespace

Command completionCommand() {
  return commandOf<CompletionOptions>(
      {.name = "viaduct completion",
       .about = "Print the completion of a shell.\n\nInstalled packages have it already. "
                "Otherwise, in bash:\n\n  source <(viaduct completion bash)",
       .flags = kCompletionFlags,
       .run = printCompletion});
}

int writePages(const CommandPage& root, const std::string& folder) {
  const std::filesystem::path into = folder, manuals = into / "man1";
  std::error_code failed;
  std::filesystem::create_directories(manuals, failed);
  const auto others = otherPages();
  bool written = writeManual(manuals, root);
  for (const CommandPage& other : others) written &= writeManual(manuals, other);
  for (const Shell& one : kShells)
    written &= write(into / fmt::format("viaduct.{}", one.name), one.completion(root, others));
  return written ? kExitOk : fail(fmt::format("{}: cannot be written", folder), kExitFailed);
}

std::string flagsPage() {
  std::string out =
      "# Flags of the commands that measure\n\n"
      "<!-- Generated: viaduct bench --help=markdown > docs/bench-flags.md -->\n\n"
      "[bench.md](bench.md) has examples. The default of a flag stands in brackets. A flag is "
      "given "
      "once; `nixlbench` takes the last value of a repeated flag.\n";
  for (const CommandPage& page :
       {benchCommand().page(), kvBenchCommand().page(), kvTraceCommand().page(),
        patternCommand().page(), pipelineCommand().page(), swapCommand().page(),
        matrixCommand().page(), p2pCommand().page(), suiteCommand().page(), nixlbenchPage()})
    out += fmt::format("\n## `{}`\n\n```{}```\n", page.name, flagsText(page));
  return out;
}

}  // namespace viaduct::app
