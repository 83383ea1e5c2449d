// Processes for tests, which exchange lines with the test. The test stops, continues and kills
// them; they die with it. Threads: one at a time per process.
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
  // `host`: a process whose namespaces the new process enters first; 0: none.
  explicit Process(std::vector<std::string> command, pid_t host = 0);
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;
  ~Process();  // kills it with SIGKILL

  pid_t pid() const { return pid_; }
  // Sends a line and returns the line of the answer; nothing if the process ended or took longer.
  std::optional<std::string> ask(const std::string& line,
                                 Deadline until = std::chrono::seconds(30));
  void send(const std::string& line);
  std::optional<std::string> answer(Deadline until = std::chrono::seconds(30));

  // stop() returns when the process has stopped, and kill() when it is dead and reaped.
  void stop();
  bool stops();  // like stop(); false: the process ended instead
  void resume();
  void kill();
  // Whether the process has closed its end of the pipe, as processes do when they end.
  bool ended() const;
  // Waits for its end, and returns the status as waitpid() does.
  int end();
  // Waits until the process exits by itself. Returns the exit code, or -1 after a signal or a
  // timeout.
  int wait(Deadline until);

 private:
  pid_t pid_ = -1;  // -1: reaped
  int end_ = 0;
  base::Fd socket_;
  std::string unread_;
};

// Whether this process has the right to make the namespaces that `unshare` makes with these
// options.
bool mayUnshare(std::vector<std::string> options);

// The `process_peer` of another build, from the environment; null: none is named.
const char* otherProcessPeer();

// A `process_peer` (see process_peer.cc) that has opened its agent. Failed commands fail the test.
class PeerProcess {
 public:
  // `settings` in the form of the command `open`: "name=b backends=tcp detect=1000".
  explicit PeerProcess(const std::string& settings, pid_t host = 0,
                       std::vector<std::string> wrapper = {});

  // Returns the answer after "ok". Without "ok" it fails the test and returns an empty text.
  std::string must(const std::string& line, Deadline until = std::chrono::seconds(30));
  // Returns the whole answer: "ok ..." or "error CODE text".
  std::string ask(const std::string& line, Deadline until = std::chrono::seconds(30));
  // Returns the number in the answer.
  std::int64_t number(const std::string& line) { return std::stoll("0" + must(line)); }

  const std::string& card() const { return card_; }  // in hex
  Process& process() { return process_; }

 private:
  Process process_;
  std::string card_;
};

}  // namespace viaduct::testing
