#include "measure/run/workers.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>

#include "measure/run/initiator.h"
#include "measure/run/target.h"

namespace viaduct::measure {
namespace {

using namespace std::chrono_literals;

constexpr auto kTurn = 50ms;    // how often the watcher looks at its two processes
constexpr auto kPatience = 3s;  // for a process that was asked to end
constexpr auto kConnect = 10s;  // for the two agents to find each other
enum class Said : std::uint8_t { kStarted, kRow, kProblem };

// Set in a worker by SIGTERM.
StopFlag worker_stop{false};
static_assert(StopFlag::is_always_lock_free);
const StopFlag never{false};

struct Channels {
  Channel initiator, target;  // the ends of the control channel
  Channel said, heard;        // the initiator's reports, and the watcher's end of them
};

Result<Channels> openChannels() {
  VIADUCT_TRY(auto control, Channel::pair());
  VIADUCT_TRY(auto reports, Channel::pair());
  return Channels{std::move(control.first), std::move(control.second), std::move(reports.first),
                  std::move(reports.second)};
}

// --- in the workers

Settings forWorker(const Settings& settings, const std::vector<Workload>& workloads,
                   const char* role) {
  Settings out = settings;
  if (!out.name.empty()) out.name += fmt::format("-{}", role);
  out.backends.clear();
  for (const Workload& w : workloads)
    if (std::find(out.backends.begin(), out.backends.end(), w.backend) == out.backends.end())
      out.backends.push_back(w.backend);
  return out;
}

Status runTarget(const Settings& settings, Channel& control) {
  auto agent = Agent::open(settings);
  if (!agent) {
    VIADUCT_CHECK(control.send(encodeAnswer(agent.error())));
    return std::move(agent).error();
  }
  VIADUCT_CHECK(control.send(encodeAnswer(agent->exportCard())));
  OwnTarget target(*agent);
  return serveTarget(control, target, worker_stop);
}

Status say(Channel& reports, Said what, std::uint32_t number, std::string_view text) {
  base::Writer out;
  out.put(static_cast<std::uint8_t>(what)).put(number).text(text);
  return reports.send(out.bytes());
}

Status measureAll(const Settings& settings, const std::vector<Workload>& workloads,
                  Channel& control, Channel& reports) {
  VIADUCT_TRY(const base::Bytes answer, control.receive(kConnect, worker_stop));
  VIADUCT_TRY(const base::Bytes card, decodeAnswer(answer));
  VIADUCT_TRY(Agent agent, Agent::open(settings));
  VIADUCT_TRY(const Peer peer, agent.importCard(card));
  VIADUCT_CHECK(peer.ready(kConnect));
  RemoteTarget target(control, worker_stop, [&peer] { return peer.state() == PeerState::kLost; });
  for (std::uint32_t i = 0; i < workloads.size(); ++i) {
    VIADUCT_CHECK(say(reports, Said::kStarted, i, {}));
    VIADUCT_TRY(const Row row, measureRow(agent, peer, target, workloads[i], worker_stop));
    VIADUCT_CHECK(say(reports, Said::kRow, i, toJson(row)));
  }
  return Ok{};
}

Status runInitiator(const Settings& settings, const std::vector<Workload>& workloads,
                    Channel& control, Channel& reports) {
  auto done = measureAll(settings, workloads, control, reports);
  if (done) return done;
  VIADUCT_CHECK(say(reports, Said::kProblem, 0, done.error().text()));
  return done;
}

void prepareWorker(const char* name, pid_t watcher) {
  ::prctl(PR_SET_NAME, name);
  ::signal(SIGINT, SIG_IGN);  // a terminal's Ctrl-C is for the watcher, which then asks us
  ::signal(SIGTERM, [](int) { worker_stop.store(true); });
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (::getppid() != watcher) ::_exit(1);  // it died before it could be watched
}

// --- in the watcher

class Worker {
 public:
  Worker(const char* name, pid_t pid) : name_(name), pid_(pid) {}
  Worker(Worker&& other) noexcept
      : name_(other.name_), pid_(std::exchange(other.pid_, 0)), status_(other.status_) {}
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;
  Worker& operator=(Worker&&) = delete;
  ~Worker() { end(); }

  bool running() {
    if (pid_ != 0 && !status_) {
      int status = 0;
      if (::waitpid(pid_, &status, WNOHANG) == pid_) status_ = status;
    }
    return pid_ != 0 && !status_;
  }
  void ask() {
    if (running()) ::kill(pid_, SIGTERM);
  }
  // Waits for the end; for a process that takes too long, makes it.
  void end() {
    const auto until = Clock::now() + kPatience;
    while (running() && Clock::now() < until) ::usleep(1000);
    if (!running()) return;
    ended_by_us_ = true;
    ::kill(pid_, SIGKILL);
    int status = 0;
    if (::waitpid(pid_, &status, 0) == pid_) status_ = status;
  }
  // How it died, when nobody here made it.
  std::optional<std::string> death() const {
    if (!status_ || ended_by_us_ || !WIFSIGNALED(*status_)) return std::nullopt;
    return fmt::format("the {} process (pid {}) was killed by signal {} ({})", name_, pid_,
                       WTERMSIG(*status_), ::strsignal(WTERMSIG(*status_)));
  }

 private:
  const char* name_;
  pid_t pid_;
  std::optional<int> status_;
  bool ended_by_us_ = false;
};

template <class Main>
Result<Worker> fork(const char* role, const char* process_name, Main main) {
  const pid_t watcher = ::getpid();
  const pid_t pid = ::fork();
  if (pid < 0) return systemError(Code::kExhausted, "fork", errno);
  if (pid > 0) return Worker(role, pid);
  prepareWorker(process_name, watcher);
  // Not exit(): what this process inherited is its parent's to flush and close.
  ::_exit(main() ? 0 : 1);
}

class Watcher {
 public:
  Watcher(const std::vector<Workload>& workloads, const Progress& progress, const StopFlag& stop,
          Channel& heard, Worker& initiator, Worker& target)
      : workloads_(workloads),
        progress_(progress),
        stop_(stop),
        heard_(heard),
        initiator_(initiator),
        target_(target) {}

  RunOutcome watch() {
    while (turn()) {
    }
    initiator_.end();
    target_.ask();
    target_.end();
    judge();
    return std::move(out_);
  }

 private:
  // Hears one report, or looks after the workers; false when the initiator has no more to say.
  bool turn() {
    const auto message = heard_.receive(kTurn, never);
    if (message) return hear(*message);
    if (message.error().code != Code::kTimeout) return false;
    const bool over = stop_.load() || !target_.running();
    if (over && !asked_) {
      asked_ = Clock::now();
      // A dead target is noticed by the initiator itself, and its words are better than ours.
      if (stop_.load()) initiator_.ask();
    }
    return initiator_.running() && (!asked_ || Clock::now() < *asked_ + kPatience);
  }

  bool hear(std::span<const std::byte> message) {
    base::Reader in(message);
    const auto what = static_cast<Said>(in.get<std::uint8_t>());
    const auto number = in.get<std::uint32_t>();
    const std::string text = in.text();
    if (!in.finished() || number >= workloads_.size()) return false;
    if (what == Said::kStarted && progress_.started) progress_.started(number, workloads_[number]);
    if (what == Said::kProblem) out_.problem = text;
    if (what != Said::kRow) return true;
    auto row = rowFromJson(text);
    if (!row) return false;
    out_.rows.push_back(*std::move(row));
    if (progress_.finished) progress_.finished(out_.rows.back());
    return true;
  }

  void judge() {
    const bool complete = out_.rows.size() == workloads_.size();
    auto death = target_.death();
    if (!death) death = initiator_.death();
    if (death) {
      out_.end = RunEnd::kWorkerDied;
      out_.problem = *death + "; the other one was ended";
    } else if (stop_.load() && !complete) {
      out_.end = RunEnd::kInterrupted;
      out_.problem = "interrupted";
    } else if (!complete) {
      out_.end = RunEnd::kFailed;
      if (out_.problem.empty()) out_.problem = "the initiator ended without saying why";
    }
  }

  const std::vector<Workload>& workloads_;
  const Progress& progress_;
  const StopFlag& stop_;
  Channel& heard_;
  Worker& initiator_;
  Worker& target_;
  std::optional<Clock::time_point> asked_;  // since when the run is to end
  RunOutcome out_;
};

Result<RunOutcome> run(const Settings& settings, const std::vector<Workload>& workloads,
                       const Progress& progress, const StopFlag& stop) {
  VIADUCT_TRY(Channels channels, openChannels());
  VIADUCT_TRY(Worker target, fork("target", "bench-target", [&] {
                channels.initiator.close();
                channels.said.close();
                channels.heard.close();
                return runTarget(forWorker(settings, workloads, "target"), channels.target);
              }));
  channels.target.close();
  VIADUCT_TRY(Worker initiator, fork("initiator", "bench-initiator", [&] {
                channels.heard.close();
                Settings own = forWorker(settings, workloads, "initiator");
                own.listen = {"127.0.0.1:0"};  // a port that was asked for is the target's
                return runInitiator(own, workloads, channels.initiator, channels.said);
              }));
  channels.initiator.close();
  channels.said.close();
  return Watcher(workloads, progress, stop, channels.heard, initiator, target).watch();
}

}  // namespace

RunOutcome measureWithTwoWorkers(const Settings& settings, const std::vector<Workload>& workloads,
                                 const Progress& progress, const StopFlag& stop) {
  auto outcome = run(settings, workloads, progress, stop);
  if (outcome) return *std::move(outcome);
  return {.end = RunEnd::kFailed, .problem = outcome.error().text()};
}

}  // namespace viaduct::measure
