// The built command line as a child process: its output read line by line, its workers found.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "base/fd.h"

namespace viaduct::testing {

class Program {
 public:
  // `environment`: NAME=value, in addition to our own without VIADUCT_*. `name`: the program is
  // called by it, as by an installed link. `terminal`: its stderr, which err() then has nothing of.
  explicit Program(const std::vector<std::string>& arguments,
                   const std::vector<std::string>& environment = {},
                   const std::string& name = VIADUCT_PROGRAM, int terminal = -1);
  ~Program();  // killed, if it still runs
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  // The next line of stdout, without its end; nothing when stdout is closed.
  std::optional<std::string> readLine();
  // Reads until a line that starts with `front`; false when none comes.
  bool readUntil(const std::string& front);
  // Reads the rest of both outputs and gives the exit code; 128 + signal when killed.
  int finish();

  const std::string& out() const { return out_; }  // all of stdout that was read
  const std::string& err() const { return err_; }  // complete after finish()
  pid_t pid() const { return pid_; }
  // Sends the signal and waits until it was taken: its handler is for one time only.
  void interrupt(int signal);
  // Its child process of that name; 0 when there is none.
  pid_t worker(const std::string& name) const;
  // The same, once there is one; 0 when the program ends before, or after 20 s.
  pid_t waitForWorker(const std::string& name) const;

 private:
  pid_t pid_ = 0;
  base::Fd stdout_, stderr_;
  std::string out_, err_, line_;
};

// Waits until the process is gone, at most some seconds; it need not be our child.
bool waitGone(pid_t pid);

}  // namespace viaduct::testing
