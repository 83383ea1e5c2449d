// Processes that a benchmark forks, and messages to and from them over pipes. Threads: the forking
// thread.
#pragma once

#include <sys/wait.h>
#include <unistd.h>
#include <viaduct/result.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <span>
#include <vector>

#include "base/fd.h"

namespace viaduct::bench {

using base::Fd;

// A forked process that runs `body`, with one pipe in each direction.
class Child {
 public:
  explicit Child(const std::function<Status(int in, int out)>& body) {
    std::array<int, 2> down{};
    std::array<int, 2> up{};
    if (::pipe(down.data()) != 0 || ::pipe(up.data()) != 0) std::abort();
    std::fflush(stdout);
    pid_ = ::fork();
    Fd child_in(down[0]), child_out(up[1]);
    to_.reset(down[1]);
    from_.reset(up[0]);
    if (pid_ != 0) return;
    to_.reset();
    from_.reset();
    const Status done = body(child_in.get(), child_out.get());
    if (!done) std::fprintf(stderr, "%s\n", done.error().text().c_str());
    ::_exit(done ? 0 : 1);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child() {
    to_.reset();
    ::waitpid(pid_, nullptr, 0);
  }
  int in() const { return from_.get(); }
  int out() const { return to_.get(); }

 private:
  pid_t pid_ = -1;
  Fd to_, from_;
};

// Sends a length-prefixed message over a pipe; the receiver gets an empty one at the pipe's end.
inline void put(int fd, std::span<const std::byte> bytes) {
  const std::uint64_t size = bytes.size();
  if (::write(fd, &size, sizeof(size)) < 0 || ::write(fd, bytes.data(), bytes.size()) < 0)
    std::abort();
}
inline std::vector<std::byte> get(int fd) {
  std::uint64_t size = 0;
  if (::read(fd, &size, sizeof(size)) != sizeof(size)) return {};
  std::vector<std::byte> bytes(size);
  for (std::size_t at = 0; at < size;) {
    const ssize_t got = ::read(fd, bytes.data() + at, size - at);
    if (got <= 0) return {};
    at += static_cast<std::size_t>(got);
  }
  return bytes;
}
template <class T>
void putValue(int fd, const T& value) {
  put(fd, std::as_bytes(std::span(&value, 1)));
}
template <class T>
T getValue(int fd) {
  const auto bytes = get(fd);
  T value{};
  if (bytes.size() == sizeof(T)) std::memcpy(&value, bytes.data(), sizeof(T));
  return value;
}

}  // namespace viaduct::bench
