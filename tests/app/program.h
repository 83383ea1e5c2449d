// Runs the built program as a child process, reads its output line by line, and finds its workers.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "base/fd.h"
#include "support/paths.h"

namespace viaduct::testing {

class Program {
 public:
  // `environment`: NAME=value, added to our own without VIADUCT_*. `name`: the name of the program
  // in argv[0]. `terminal`: replaces stderr, so that err() stays empty.
  explicit Program(const std::vector<std::string>& arguments,
                   const std::vector<std::string>& environment = {},
                   const std::string& name = kProgram, int terminal = -1);
  ~Program();  // kills it, if it still runs
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  // The next line of stdout, without its end; nothing once stdout is closed.
  std::optional<std::string> readLine();
  // Reads up to a line that starts with `front`; false if there is none.
  bool readUntil(const std::string& front);
  // Reads the rest of both outputs and returns the exit code; 128 + signal if it was killed.
  int finish();

  const std::string& out() const { return out_; }  // all of stdout that was read so far
  const std::string& err() const { return err_; }  // complete after finish()
  pid_t pid() const { return pid_; }
  // Sends the signal and waits until the program handles it, because the handler works only once.
  void interrupt(int signal);
  // The child process of that name; 0: there is none.
  pid_t worker(const std::string& name) const;
  // Waits for that child process; 0: the program ended before, or 20 s have passed.
  pid_t waitForWorker(const std::string& name) const;

 private:
  pid_t pid_ = 0;
  base::Fd stdout_, stderr_;
  std::string out_, err_, line_;
};

// Appends flags. A flag of `more` replaces an equal one in `words`, because the program refuses a
// repeated flag.
std::vector<std::string> withFlags(std::vector<std::string> words,
                                   const std::vector<std::string>& more);

// Waits until the process is gone, at most some seconds. It need not be our child.
bool waitGone(pid_t pid);

}  // namespace viaduct::testing
