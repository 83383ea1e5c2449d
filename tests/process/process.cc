#include "process/process.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <utility>

#include "support/paths.h"

namespace viaduct::testing {

namespace {

// The namespaces of a host; none for 0. The parent enters the PID namespace, on behalf of its
// children. The child enters the others.
class Namespaces {
 public:
  explicit Namespaces(pid_t host) {
    if (host == 0) return;
    const auto open = [](const std::string& path) {
      return base::Fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    };
    const std::string at = "/proc/" + std::to_string(host) + "/ns/";
    for (const char* const name : {"uts", "ipc", "net", "mnt"}) own_.push_back(open(at + name));
    here_ = open("/proc/self/ns/pid");
    const auto children = open(at + "pid_for_children");
    if (::setns(children.get(), CLONE_NEWPID) != 0) ADD_FAILURE() << "setns: " << errno;
  }
  Namespaces(const Namespaces&) = delete;
  Namespaces& operator=(const Namespaces&) = delete;
  ~Namespaces() {
    if (here_) ::setns(here_.get(), CLONE_NEWPID);
  }
  // Runs in the child. Enters the mount namespace last, when all files are open. setns() into a
  // mount namespace needs a working directory that no thread shares, and TSan has started a thread
  // since fork().
  bool enter() const {
    return ::unshare(CLONE_FS) == 0 &&
           std::all_of(own_.begin(), own_.end(),
                       [](const base::Fd& one) { return ::setns(one.get(), 0) == 0; });
  }

 private:
  std::vector<base::Fd> own_;
  base::Fd here_;
};

// Runs in the child between fork and exec, so it makes only async-signal-safe calls.
[[noreturn]] void become(char* const* argv, int talk, const Namespaces& host) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (!host.enter()) ::_exit(126);
  ::dup2(talk, 0);
  ::dup2(talk, 1);
  ::execvp(argv[0], argv);
  ::_exit(127);
}

int millisecondsUntil(Deadline until) {
  const auto left = until.at() - Clock::now();
  const auto ms = std::chrono::ceil<std::chrono::milliseconds>(left).count();
  return static_cast<int>(std::clamp<std::int64_t>(ms, 0, 60'000));
}

}  // namespace

Process::Process(std::vector<std::string> command, pid_t host) {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    ADD_FAILURE() << "socketpair: " << errno;
    return;
  }
  socket_.reset(ends[0]);
  const base::Fd theirs(ends[1]);
  const Namespaces namespaces(host);
  std::vector<char*> argv;
  for (std::string& word : command) argv.push_back(word.data());
  argv.push_back(nullptr);
  pid_ = ::fork();
  if (pid_ == 0) become(argv.data(), theirs.get(), namespaces);
}

Process::~Process() { kill(); }

void Process::send(const std::string& line) {
  const std::string text = line + "\n";
  if (::send(socket_.get(), text.data(), text.size(), MSG_NOSIGNAL) < 0)
    ADD_FAILURE() << "process " << pid_ << " is gone: " << line;
}

std::optional<std::string> Process::answer(Deadline until) {
  for (;;) {
    if (const auto end = unread_.find('\n'); end != std::string::npos) {
      std::string line = unread_.substr(0, end);
      unread_.erase(0, end + 1);
      return line;
    }
    pollfd wait{.fd = socket_.get(), .events = POLLIN, .revents = 0};
    if (::poll(&wait, 1, millisecondsUntil(until)) <= 0) return std::nullopt;
    std::array<char, 4096> part{};
    const ssize_t got = ::read(socket_.get(), part.data(), part.size());
    if (got <= 0) return std::nullopt;
    unread_.append(part.data(), static_cast<std::size_t>(got));
  }
}

std::optional<std::string> Process::ask(const std::string& line, Deadline until) {
  send(line);
  return answer(until);
}

bool Process::ended() const {
  char next = 0;
  return ::recv(socket_.get(), &next, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
}

int Process::end() {
  if (pid_ > 0) ::waitpid(std::exchange(pid_, -1), &end_, 0);
  return end_;
}

void Process::stop() {
  if (!stops()) ADD_FAILURE() << "a process that is to stop has ended";
}

bool Process::stops() {
  if (pid_ <= 0) return false;  // kill() would take it for a group of processes
  ::kill(pid_, SIGSTOP);
  int status = 0;
  if (::waitpid(pid_, &status, WUNTRACED) != pid_) return false;
  if (WIFSTOPPED(status)) return true;
  end_ = status;
  pid_ = -1;
  return false;
}

void Process::resume() {
  if (pid_ > 0) ::kill(pid_, SIGCONT);
}

void Process::kill() {
  if (pid_ <= 0) return;
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
  pid_ = -1;
}

int Process::wait(Deadline until) {
  // The pipe ends when the process ends, because no other process has its other end.
  while (answer(until).has_value()) {
  }
  if (until.passed()) return -1;
  const int status = end();
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

bool mayUnshare(std::vector<std::string> options) {
  options.insert(options.begin(), "unshare");
  options.insert(options.end(), {"--", "true"});
  return Process(std::move(options)).wait(std::chrono::seconds(60)) == 0;
}

// Tests between two builds name the program of the other build.
const char* otherProcessPeer() { return std::getenv("VIADUCT_PROCESS_PEER"); }

PeerProcess::PeerProcess(const std::string& settings, pid_t host, std::vector<std::string> wrapper)
    : process_((wrapper.emplace_back(otherProcessPeer() ? otherProcessPeer() : kProcessPeer),
                std::move(wrapper)),
               host) {
  card_ = must("open " + settings);
}

std::string PeerProcess::ask(const std::string& line, Deadline until) {
  return process_.ask(line, until).value_or("error nothing");
}

std::string PeerProcess::must(const std::string& line, Deadline until) {
  const std::string answer = ask(line, until);
  if (answer.starts_with("ok")) return answer.size() > 3 ? answer.substr(3) : "";
  ADD_FAILURE() << line.substr(0, 80) << ": " << answer;
  return {};
}

}  // namespace viaduct::testing
