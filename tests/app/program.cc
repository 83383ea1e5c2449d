#include "app/program.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <fstream>
#include <sstream>

#include "support/paths.h"

namespace viaduct::testing {
namespace {

constexpr std::chrono::milliseconds kPatience{20'000};

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> out;
  out.reserve(texts.size() + 1);
  for (std::string& text : texts) out.push_back(text.data());
  out.push_back(nullptr);
  return out;
}

std::vector<std::string> environmentWith(const std::vector<std::string>& more) {
  std::vector<std::string> out;
  for (char** at = environ; *at != nullptr; ++at)
    if (std::string(*at).rfind("VIADUCT_", 0) != 0) out.emplace_back(*at);
  out.insert(out.end(), more.begin(), more.end());
  return out;
}

std::string readAll(int fd) {
  std::string out;
  ::lseek(fd, 0, SEEK_SET);
  std::array<char, 4096> part{};
  for (ssize_t got = 0; (got = ::read(fd, part.data(), part.size())) > 0;)
    out.append(part.data(), static_cast<std::size_t>(got));
  return out;
}

}  // namespace

Program::Program(const std::vector<std::string>& arguments,
                 const std::vector<std::string>& environment, const std::string& name,
                 int terminal) {
  std::array<int, 2> out{};
  if (::pipe2(out.data(), O_CLOEXEC) != 0) return;
  stdout_.reset(out[0]);
  const base::Fd write_end(out[1]);
  // stderr goes to a file, because a full pipe that the test does not read would block the program.
  stderr_.reset(::memfd_create("stderr", MFD_CLOEXEC));
  std::vector<std::string> words{name};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<std::string> variables = environmentWith(environment);
  const auto argv = pointers(words);
  const auto envp = pointers(variables);
  pid_ = ::fork();
  if (pid_ != 0) return;
  ::dup2(write_end.get(), STDOUT_FILENO);
  ::dup2(terminal < 0 ? stderr_.get() : terminal, STDERR_FILENO);
  ::execve(kProgram, argv.data(), envp.data());
  ::_exit(127);
}

Program::~Program() {
  if (pid_ <= 0) return;
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
}

std::optional<std::string> Program::readLine() {
  for (;;) {
    if (const auto end = line_.find('\n'); end != std::string::npos) {
      std::string line = line_.substr(0, end);
      line_.erase(0, end + 1);
      return line;
    }
    std::array<char, 4096> part{};
    const ssize_t got = ::read(stdout_.get(), part.data(), part.size());
    if (got <= 0) return std::nullopt;
    line_.append(part.data(), static_cast<std::size_t>(got));
    out_.append(part.data(), static_cast<std::size_t>(got));
  }
}

bool Program::readUntil(const std::string& front) {
  while (const auto line = readLine())
    if (line->rfind(front, 0) == 0) return true;
  return false;
}

int Program::finish() {
  while (readLine()) {
  }
  int status = 0;
  ::waitpid(pid_, &status, 0);
  pid_ = 0;
  err_ = readAll(stderr_.get());
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

void Program::interrupt(int signal) {
  ::kill(pid_, signal);
  for (bool caught = true; caught;) {
    std::ifstream status("/proc/" + std::to_string(pid_) + "/status");
    caught = false;
    for (std::string word; status >> word;)
      if (word == "SigCgt:" && status >> word)
        caught = ((std::stoull(word, nullptr, 16) >> (signal - 1)) & 1U) != 0;
  }
}

pid_t Program::worker(const std::string& name) const {
  const std::string task = "/proc/" + std::to_string(pid_) + "/task/" + std::to_string(pid_);
  std::ifstream children(task + "/children");
  for (pid_t child = 0; children >> child;) {
    std::ifstream comm("/proc/" + std::to_string(child) + "/comm");
    std::string found;
    std::getline(comm, found);
    if (found == name) return child;
  }
  return 0;
}

pid_t Program::waitForWorker(const std::string& name) const {
  const base::Fd own(static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0)));
  const auto end = std::chrono::steady_clock::now() + kPatience;
  while (std::chrono::steady_clock::now() < end) {
    if (const pid_t found = worker(name); found != 0) return found;
    pollfd ended{.fd = own.get(), .events = POLLIN, .revents = 0};
    if (::poll(&ended, 1, 1) != 0) break;
  }
  return 0;
}

std::vector<std::string> withFlags(std::vector<std::string> words,
                                   const std::vector<std::string>& more) {
  const auto isFlag = [](const std::string& word) { return word.starts_with("--"); };
  const auto nameOf = [](std::string word) {
    std::replace(word.begin() + 2, word.end(), '_', '-');
    return word.substr(0, word.find('='));
  };
  for (const std::string& flag : more) {
    if (!isFlag(flag)) continue;
    const auto same = [&](const std::string& word) {
      return isFlag(word) && nameOf(word) == nameOf(flag);
    };
    const auto at = std::find_if(words.begin(), words.end(), same);
    if (at == words.end()) continue;
    const bool has_value =
        at->find('=') == std::string::npos && at + 1 != words.end() && !isFlag(at[1]);
    words.erase(at, at + (has_value ? 2 : 1));
  }
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

bool waitGone(pid_t pid) {
  const base::Fd fd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  if (!fd) return true;
  pollfd wait{.fd = fd.get(), .events = POLLIN, .revents = 0};
  return ::poll(&wait, 1, static_cast<int>(kPatience.count())) == 1;
}

}  // namespace viaduct::testing
