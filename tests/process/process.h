// Real processes for tests: started, talked to line by line, stopped, continued, killed. They die
// with the test. Threads: one at a time per process.
#pragma once

#include <sys/types.h>
#include <viaduct/deadline.h>

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/fd.h"

namespace viaduct::testing {

class Process {
 public:
  // `host`: a process that holds a host's namespaces, which are entered first; 0: here.
  explicit Process(std::vector<std::string> command, pid_t host = 0);
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;
  ~Process();  // SIGKILL

  pid_t pid() const { return pid_; }
  // Sends a line and gives the line that comes back; nothing when the process ended or took longer.
  std::optional<std::string> ask(const std::string& line,
                                 Deadline until = std::chrono::seconds(30));
  void send(const std::string& line);
  std::optional<std::string> answer(Deadline until = std::chrono::seconds(30));

  // SIGSTOP returns when the process has stopped, SIGKILL when it is dead and reaped.
  void stop();
  bool stops();  // the same; false: it had ended, or ends instead
  void resume();
  void kill();
  // Whether it has closed its end of the conversation, which processes do when they end.
  bool ended() const;
  // Waits for its end, and says it as waitpid() does.
  int end();
  // Waits for its own end: its exit status, or -1 when a signal ended it or it did not come.
  int wait(Deadline until);

 private:
  pid_t pid_ = -1;  // -1: reaped
  int end_ = 0;
  base::Fd socket_;
  std::string unread_;
};

// Whether this process has the right to make the namespaces that `unshare` with these options
// makes.
bool mayUnshare(std::vector<std::string> options);

// A `process_peer` (see there) that has opened its agent. Failed commands fail the test.
class PeerProcess {
 public:
  // `settings` as the command `open` takes them: "name=b backends=tcp detect=1000".
  explicit PeerProcess(const std::string& settings, pid_t host = 0,
                       std::vector<std::string> wrapper = {});

  // The rest of the answer after "ok"; a failure of the test, and empty, when there is none.
  std::string must(const std::string& line, Deadline until = std::chrono::seconds(30));
  // The whole answer: "ok ..." or "error CODE text".
  std::string ask(const std::string& line, Deadline until = std::chrono::seconds(30));
  // The number in an answer.
  std::int64_t number(const std::string& line) { return std::stoll("0" + must(line)); }

  const std::string& card() const { return card_; }  // in hex
  Process& process() { return process_; }

 private:
  Process process_;
  std::string card_;
};

}  // namespace viaduct::testing
