// The time that the program takes to diagnose nodes.   doctor_bench PROGRAM [ROUNDS]
// Each healthy node of the tests is a folder in memory; the nodes take turns.
#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "diag/fixtures_testing.h"
#include "must.h"

namespace {

using namespace viaduct;
using Milliseconds = std::chrono::duration<double, std::milli>;

// The time of one whole process, whose output is dropped. Exit codes up to 2 are diagnoses.
double run(std::vector<std::string> words) {
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
  const auto start = std::chrono::steady_clock::now();
  pid_t child = 0;
  int status = 0;
  if (::posix_spawn(&child, arguments[0], &actions, nullptr, arguments.data(), environ) != 0)
    die("cannot run " + words[0]);
  if (::waitpid(child, &status, 0) != child || !WIFEXITED(status) || WEXITSTATUS(status) > 2)
    die("no diagnosis");
  ::posix_spawn_file_actions_destroy(&actions);
  return Milliseconds(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return std::fputs("doctor_bench PROGRAM [ROUNDS]\n", stderr), 1;
  const int rounds = argc > 2 ? std::atoi(argv[2]) : 21;
  std::vector<std::unique_ptr<diag::testing::Fixture>> nodes;
  std::map<std::string, std::vector<double>> times;
  for (const auto& node : diag::testing::healthyNodes())
    nodes.emplace_back(new diag::testing::Fixture(node.make()))->save();
  for (int round = 0; round < rounds; ++round)
    for (std::size_t i = 0; i < nodes.size(); ++i)
      for (const char* command : {"doctor", "env"})
        times[fmt::format("{} {}", command, diag::testing::healthyNodes()[i].name)].push_back(
            run({argv[1], command, "--root", nodes[i]->root()}));
  for (auto& [name, all] : times) {
    std::sort(all.begin(), all.end());
    fmt::print("{:28} median {:6.1f} ms, longest {:6.1f} ms\n", name, all[all.size() / 2],
               all.back());
  }
}
