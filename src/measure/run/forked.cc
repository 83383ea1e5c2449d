#include "measure/run/forked.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/fd.h"
#include "base/read_fd.h"

namespace viaduct::measure::matrix {
namespace {

constexpr int kTurn = 50;  // milliseconds between two looks at the stop flag

[[noreturn]] void runChild(const std::function<std::string()>& work, pid_t parent,
                           const base::Fd& to) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(1);  // the parent died before prctl() took effect
  ::signal(SIGINT, SIG_IGN);  // Ctrl-C on the terminal is for the parent, which then sends SIGTERM
  const int written = base::writeAll(to.get(), work());
  // _exit() and not exit(), because the parent flushes and closes the inherited objects.
  ::_exit(written == 0 ? 0 : 1);
}

// Reads until the child and its own children have closed the pipe.
Result<std::string> textOf(pid_t child, const base::Fd& from, const base::StopFlag& stop) {
  std::string out;
  std::array<char, 4096> some{};
  for (bool asked = false;;) {
    if (stop.load() && !std::exchange(asked, true)) ::kill(child, SIGTERM);
    pollfd watched{.fd = from.get(), .events = POLLIN, .revents = 0};
    if (::poll(&watched, 1, kTurn) <= 0) continue;
    const ssize_t got = ::read(from.get(), some.data(), some.size());
    if (got == 0) return out;
    if (got > 0) out.append(some.data(), static_cast<std::size_t>(got));
    if (got < 0 && errno != EINTR) return systemError(Code::kDevice, "read", errno);
  }
}

}  // namespace

Result<std::string> inChild(const std::function<std::string()>& work, const base::StopFlag& stop) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return systemError(Code::kExhausted, "pipe", errno);
  const base::Fd out(ends[0]);
  base::Fd in(ends[1]);
  const pid_t parent = ::getpid(), child = ::fork();
  if (child < 0) return systemError(Code::kExhausted, "fork", errno);
  if (child == 0) runChild(work, parent, in);
  in = base::Fd();
  auto text = textOf(child, out, stop);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
  if (WIFSIGNALED(status))
    return Error{.code = Code::kDevice,
                 .operation = "measure",
                 .detail = fmt::format("the measuring process was killed by signal {} ({})",
                                       WTERMSIG(status), ::strsignal(WTERMSIG(status)))};
  return text;
}

}  // namespace viaduct::measure::matrix
