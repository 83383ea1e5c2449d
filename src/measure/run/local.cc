// Runs all members of a benchmark as processes of this machine, or as threads of this process.
#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <thread>
#include <utility>

#include "base/random.h"
#include "measure/run/run.h"
#include "measure/workload/machine.h"
#include "meet/groups/server.h"

namespace viaduct::measure {
namespace {

using namespace std::chrono_literals;

constexpr auto kTurn = 50ms;        // how often the watcher looks for a reason to stop
constexpr auto kLastPatience = 3s;  // how long a process may take to end after SIGTERM
constexpr auto kNotice = 1s;        // wait for the group's own error, which has more details

// SIGTERM sets this flag in a forked member.
StopFlag asked_to_end{false};
static_assert(StopFlag::is_always_lock_free);

Result<std::string> addressOf(const base::Fd& listening) {
  sockaddr_in at{};
  socklen_t size = sizeof(at);
  if (::getsockname(listening.get(), reinterpret_cast<sockaddr*>(&at), &size) != 0)
    return systemError(Code::kDevice, "getsockname", errno);
  return fmt::format("127.0.0.1:{}", ntohs(at.sin_port));
}

Result<std::string> freshToken() {
  std::array<std::uint8_t, 16> bytes{};
  VIADUCT_CHECK(base::fillSecret(bytes));
  std::string token;
  for (const std::uint8_t byte : bytes) token += fmt::format("{:02x}", byte);
  return token;
}

// Returns the request for one rank. Only one agent can have the requested name and ports. The first
// target gets the ports.
RunRequest forRank(const RunRequest& request, std::uint32_t rank) {
  RunRequest own = request;
  own.rank = rank;
  if (!own.settings.name.empty()) own.settings.name += fmt::format("-{}", rank);
  if (rank != request.spec.layout.initiatorProcesses() ||
      request.settings.listen == Settings{}.listen)
    own.settings.listen = listenHere(request.settings.rails);
  return own;
}

class Child {
 public:
  Child(std::uint32_t rank, pid_t pid, base::Fd words)
      : rank_(rank),
        pid_(pid),
        pidfd_(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0))),
        words_(std::move(words)) {}

  int pidfd() const { return pidfd_.get(); }
  bool running() {
    if (!status_) {
      int status = 0;
      if (::waitpid(pid_, &status, WNOHANG) == pid_) status_ = status;
    }
    return !status_;
  }
  void ask() {
    if (running()) ::kill(pid_, SIGTERM);
  }
  // Waits until the process has ended. Kills a process that takes too long.
  void end(Clock::time_point until) {
    while (running() && Clock::now() < until) ::usleep(1000);
    if (!running()) return;
    ended_by_us_ = true;
    ::kill(pid_, SIGKILL);
    int status = 0;
    if (::waitpid(pid_, &status, 0) == pid_) status_ = status;
  }
  // Returns how the process died, unless end() killed it.
  std::optional<std::string> death(const Layout& layout) const {
    if (!status_ || ended_by_us_ || !WIFSIGNALED(*status_)) return std::nullopt;
    const std::string_view role = layout.roleOf(rank_);
    return fmt::format("rank {}, a{} {} (pid {}), was killed by signal {} ({})", rank_,
                       role.starts_with('i') ? "n" : "", role, pid_, WTERMSIG(*status_),
                       ::strsignal(WTERMSIG(*status_)));
  }
  // Returns the error text that the process wrote, or an empty text.
  std::string words() const {
    std::array<char, 4096> text{};
    const ssize_t got = ::read(words_.get(), text.data(), text.size());
    return got > 0 ? std::string(text.data(), static_cast<std::size_t>(got)) : std::string();
  }

 private:
  std::uint32_t rank_;
  pid_t pid_;
  base::Fd pidfd_, words_;
  std::optional<int> status_;
  bool ended_by_us_ = false;
};

[[noreturn]] void runChild(const RunRequest& request, std::uint32_t rank, pid_t parent, int words) {
  ::prctl(PR_SET_NAME, fmt::format("bench-rank-{}", rank).c_str());
  ::signal(SIGINT, SIG_IGN);  // Ctrl-C on the terminal is for rank 0, which then sends SIGTERM
  ::signal(SIGTERM, [](int) { asked_to_end.store(true); });
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(1);  // the parent died before prctl() took effect
  const RunOutcome outcome = runAsMember(request, {}, asked_to_end);
  if (outcome.end != RunEnd::kComplete) {
    const auto written = ::write(words, outcome.problem.data(), outcome.problem.size());
    ::_exit(written < 0 ? 2 : 1);
  }
  // _exit() and not exit(), because the parent flushes and closes the inherited objects.
  ::_exit(0);
}

Result<std::unique_ptr<Child>> forkChild(const RunRequest& request, std::uint32_t rank) {
  std::array<int, 2> pipe{};
  if (::pipe2(pipe.data(), O_CLOEXEC | O_NONBLOCK) != 0)
    return systemError(Code::kExhausted, "pipe", errno);
  base::Fd words(pipe[0]), said(pipe[1]);
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid < 0) return systemError(Code::kExhausted, "fork", errno);
  if (pid == 0) runChild(request, rank, parent, said.get());
  return std::make_unique<Child>(rank, pid, std::move(words));
}

using Children = std::vector<std::unique_ptr<Child>>;

// Sets `over` if the user wants to stop, or if rank 0 still runs kNotice after a child has ended.
// In the second case rank 0 may wait for the ended child.
class Watcher {
 public:
  Watcher(const Children& children, const StopFlag& stop)
      : thread_([this, &children, &stop] { watch(children, stop); }) {}
  ~Watcher() {
    done_.store(true);
    thread_.join();
  }
  Watcher(const Watcher&) = delete;
  Watcher& operator=(const Watcher&) = delete;
  StopFlag over{false};

 private:
  void watch(const Children& children, const StopFlag& stop) {
    std::vector<pollfd> fds;
    for (const auto& child : children)
      fds.push_back({.fd = child->pidfd(), .events = POLLIN, .revents = 0});
    std::optional<Clock::time_point> ended;
    while (!done_.load()) {
      constexpr int kMilliseconds = std::chrono::milliseconds(kTurn).count();
      // Sleeps, because the descriptor of an ended child stays readable, and poll() would not wait.
      if (ended)
        std::this_thread::sleep_for(kTurn);
      else if (::poll(fds.data(), fds.size(), kMilliseconds) > 0)
        ended = Clock::now();
      if (stop.load() || (ended && Clock::now() > *ended + kNotice)) over.store(true);
    }
  }
  StopFlag done_{false};
  std::thread thread_;
};

void endAll(Children& children, bool at_once) {
  for (const auto& child : children)
    if (at_once) child->ask();
  const auto until = Clock::now() + kLastPatience;
  for (const auto& child : children) child->end(until);
}

// If a signal killed a child, replaces rank 0's guess of the problem by that. If the watcher
// stopped rank 0, takes the problem from a child's error text.
void explain(const Children& children, const RunRequest& request, const StopFlag& stop,
             RunOutcome& out) {
  if (out.end == RunEnd::kComplete || stop.load()) return;
  for (const auto& child : children)
    if (const auto death = child->death(request.spec.layout)) {
      out.end = RunEnd::kWorkerDied;
      out.problem = *death + "; the other workers were ended";
      return;
    }
  if (out.end != RunEnd::kInterrupted) return;
  out.end = RunEnd::kFailed;
  for (const auto& child : children)
    if (const std::string words = child->words(); !words.empty()) {
      out.problem = words;
      return;
    }
  out.problem = "a worker ended without a reason";
}

RunOutcome runOnThreads(const RunRequest& request, const Progress& progress, const StopFlag& stop) {
  StopFlag over{false};
  std::vector<std::thread> others;
  for (std::uint32_t rank = 1; rank < request.spec.layout.processes(); ++rank)
    others.emplace_back(
        [own = forRank(request, rank), &over] { static_cast<void>(runAsMember(own, {}, over)); });
  RunOutcome out = runAsMember(forRank(request, 0), progress, stop);
  // Not after a complete run, when another member may still wait for the last message of the run.
  if (out.end != RunEnd::kComplete) over.store(true);
  for (std::thread& other : others) other.join();
  return out;
}

Result<RunOutcome> run(RunRequest request, const Progress& progress, const StopFlag& stop) {
  VIADUCT_TRY(base::Fd listening, meet::EmbeddedServer::listen("127.0.0.1:0"));
  meet::PlaceOptions place{.detect = request.settings.detect};
  VIADUCT_TRY(place.where, addressOf(listening));
  VIADUCT_TRY(place.token, freshToken());
  request.place = place;
  Children children;
  const std::uint32_t forked = request.on_threads ? 1 : request.spec.layout.processes();
  for (std::uint32_t rank = 1; rank < forked; ++rank) {
    auto child = forkChild(forRank(request, rank), rank);
    if (!child) {
      endAll(children, true);
      return std::move(child).error();
    }
    children.push_back(*std::move(child));
  }
  auto server = meet::EmbeddedServer::start(
      {.listening = std::move(listening), .token = place.token, .detect = request.settings.detect});
  if (!server) {
    endAll(children, true);
    return std::move(server).error();
  }
  if (request.on_threads) return runOnThreads(request, progress, stop);
  RunOutcome out;
  {
    const Watcher watcher(children, stop);
    out = runAsMember(forRank(request, 0), progress, watcher.over);
  }
  endAll(children, out.end != RunEnd::kComplete);
  explain(children, request, stop, out);
  return out;
}

}  // namespace

RunOutcome runLocally(const RunRequest& request, const Progress& progress, const StopFlag& stop) {
  auto outcome = run(request, progress, stop);
  if (outcome) return *std::move(outcome);
  return {.end = RunEnd::kFailed, .problem = outcome.error().text()};
}

}  // namespace viaduct::measure
