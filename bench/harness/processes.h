// Processes that a program forks: messages to and from them, memory that they share, and turns that
// they take. Threads: the forking thread.
#pragma once

#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstring>
#include <functional>
#include <span>
#include <vector>

#include "base/fd.h"
#include "harness/program.h"

namespace viaduct::bench {

using base::Fd;

// One end of a connection for messages of up to 64 KiB.
class Channel {
 public:
  explicit Channel(Fd socket) : socket_(std::move(socket)) {}
  void send(std::span<const std::byte> message) const;
  std::vector<std::byte> receive() const;  // empty: the other process has ended

  template <class T>
  void sendValue(const T& value) const {
    send(std::as_bytes(std::span(&value, 1)));
  }
  template <class T>
  T receiveValue() const {
    const auto message = receive();
    if (message.size() != sizeof(T)) die("the other process has ended");
    T value{};
    std::memcpy(&value, message.data(), sizeof(T));
    return value;
  }

 protected:
  Fd socket_;
};

// A forked process that runs `body`. If the child fails, this process ends too, because its waits
// may spin for ever. The end of this process also ends the child.
class Child : public Channel {
 public:
  using Body = std::function<void(Channel& parent)>;
  explicit Child(const Body& body);
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child();            // waits until the child ends
  bool ended() const;  // without waiting
  void kill() const;   // ends the child at once
  pid_t pid() const { return pid_; }

 private:
  pid_t pid_ = -1;
};

// Maps memory without touching it. With MAP_SHARED, processes that are forked later share it.
std::byte* mapped(std::size_t bytes, int flags);
// Private memory that has all of its pages.
std::byte* touched(std::size_t bytes);
// A value that this process shares with the processes that it forks later.
template <class T>
T& shared() {
  return *new (mapped(sizeof(T), MAP_SHARED)) T;
}

// The moment at which another process has seen something.
class Sighting {
 public:
  void see() { at_.store(Clock::now().time_since_epoch().count(), std::memory_order_release); }
  void forget() { at_ = 0; }
  // Spins until the moment is there, because a sleep sets a timer. In a virtual machine, that timer
  // occupies the core on which the other process may be about to wake.
  Clock::time_point take() {
    Clock::rep at = 0;
    while ((at = at_.load(std::memory_order_acquire)) == 0) {
    }
    forget();
    return Clock::time_point(Duration(at));
  }

 private:
  std::atomic<Clock::rep> at_{0};
};

// The turns of a following process, which a leading process begins. Both processes spin.
class Turns {
 public:
  // In the process that leads: returns once the follower has begun the turn. Turns count from 0.
  void begin(int turn) {
    now_ = turn;
    while (begun_ != turn) ::sched_yield();
  }
  void finish() { now_ = kOver; }
  // In the process that follows: calls each(turn) in every turn, until finish().
  template <class Do>
  void follow(const Do& each) {
    for (int turn = 0; (turn = now_) != kOver;) {
      begun_ = turn;
      if (turn >= 0) each(turn);
      while (!over(turn)) ::sched_yield();
    }
  }
  bool over(int turn) const { return now_.load(std::memory_order_acquire) != turn; }

 private:
  static constexpr int kIdle = -1, kOver = -2;
  std::atomic<int> now_{kIdle}, begun_{kIdle};
};

void pinTo(int processor);
// Moves this process into a network namespace, which is a file.
void enterNetwork(const std::string& file);

}  // namespace viaduct::bench
