// The time that the program takes to diagnose nodes. Each healthy node of the tests is a folder in
// memory; the nodes take turns.   doctor_bench PROGRAM [ROUNDS]
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>

#include <memory>

#include "diag/fixtures_testing.h"
#include "harness/program.h"

namespace {

using namespace viaduct;
using namespace viaduct::bench;

// Runs one whole process, whose output is dropped. Exit codes up to 2 are diagnoses.
void run(std::vector<std::string> words) {
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
  pid_t child = 0;
  int status = 0;
  if (::posix_spawn(&child, arguments[0], &actions, nullptr, arguments.data(), environ) != 0)
    die("cannot run " + words[0]);
  if (::waitpid(child, &status, 0) != child || !WIFEXITED(status) || WEXITSTATUS(status) > 2)
    die("no diagnosis");
  ::posix_spawn_file_actions_destroy(&actions);
}

struct Case {
  std::string name;
  std::vector<std::string> words;
  Samples ms = {};
};

}  // namespace

int main(int argc, char** argv) {
  const Arguments given(argc, argv, "doctor_bench PROGRAM [ROUNDS]");
  std::vector<std::unique_ptr<diag::testing::Fixture>> nodes;
  std::vector<Case> cases;
  for (const auto& node : diag::testing::healthyNodes()) {
    nodes.emplace_back(new diag::testing::Fixture(node.make()))->save();
    for (const char* command : {"doctor", "env"})
      cases.push_back({fmt::format("{} {}", command, node.name),
                       {given.text(0), command, "--root", nodes.back()->root()}});
  }
  inTurns({given.number(1, 21)}, cases,
          [](Case& one, int) { one.ms.add(1e3 * secondsOf([&] { run(one.words); })); });
  Table table({words("", 28), figure("median, ms", 1), figure("longest", 1)});
  for (const Case& one : cases) table.row(one.name, one.ms, one.ms.most());
}
