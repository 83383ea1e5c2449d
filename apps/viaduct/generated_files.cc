#include "viaduct/generated_files.h"

#include <fmt/format.h>

#include <array>
#include <filesystem>
#include <fstream>

#include "viaduct/bench_options.h"
#include "viaduct/commands.h"
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

// Returns the pages of programs with names of their own.
std::array<CommandPage, 1> otherPages() { return {benchPage(true)}; }

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

}  // namespace

int printCompletion(const CommandPage& root, const std::string& shell) {
  for (const Shell& one : kShells)
    if (one.name == shell) {
      fmt::print("{}", one.completion(root, otherPages()));
      return kExitOk;
    }
  return fail(fmt::format("there is no completion for \"{}\"; name bash, zsh or fish", shell),
              kExitUsage);
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

}  // namespace viaduct::app
