// What all groups and entries of one process have at an etcd: the loop, the client, the lease.
// Threads: open(), run() and the destructor from any but the loop's own; the rest in the loop's.
#pragma once

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "base/waiting.h"
#include "meet/etcd/client.h"
#include "meet/etcd/curl_loop.h"
#include "meet/etcd/keys.h"
#include "meet/etcd/lease.h"
#include "meet/meeting.h"
#include "meet/place_options.h"

namespace viaduct::meet::etcd {

// For an answer that was due at a deadline to come through.
inline constexpr std::chrono::milliseconds kGrace{200};
// For finding out what a wait is for, while it goes on.
inline constexpr std::chrono::milliseconds kAskTime{500};

class EtcdContext {
 public:
  static Result<std::shared_ptr<EtcdContext>> open(const PlaceOptions& options);
  // Takes back the lease, and with it all keys: at the latest a second later this is given up.
  ~EtcdContext();
  EtcdContext(const EtcdContext&) = delete;
  EtcdContext& operator=(const EtcdContext&) = delete;

  // Runs it in the loop's thread and waits until it has run; it must not wait itself.
  void run(const std::function<void()>& task);

  CurlLoop& loop() { return *loop_; }
  Client& client() { return *client_; }
  Lease& lease() { return *lease_; }
  const Space& space() const { return space_; }
  const std::string& token() const { return token_; }
  const std::string& text() const { return text_; }
  const base::SayWaiting& waiting() const { return waiting_; }

  // A transaction; the error is etcd's own or of an answer that makes no sense.
  void txn(const Txn& txn, Clock::time_point until, std::function<void(Result<TxnReply>)> done);
  // By when something that nobody waits for has to be through.
  Clock::time_point patience() const {
    return Clock::now() + lease_->timeToLive() + Lease::kPatience;
  }

 private:
  EtcdContext() = default;
  void takeBack(const std::function<void()>& done);

  Space space_;
  std::string token_, text_;
  base::SayWaiting waiting_;
  std::unique_ptr<CurlLoop> loop_;
  std::unique_ptr<Client> client_;
  std::unique_ptr<Lease> lease_;
};

// A value that one thread waits for and the loop's sets. The stop flag has no file descriptor, so
// it is looked at now and then.
class Board {
 public:
  template <class Set>
  void change(Set&& set) {
    {
      const std::lock_guard lock(mutex_);
      std::forward<Set>(set)();
    }
    changed_.notify_all();
  }
  template <class Get>
  auto look(Get&& get) const {
    const std::lock_guard lock(mutex_);
    return std::forward<Get>(get)();
  }
  // True once `ready` says so under the lock; false at `until` or soon after `stop` was set.
  template <class Ready>
  bool wait(Clock::time_point until, const StopFlag* stop, Ready&& ready) {
    constexpr std::chrono::milliseconds kLook{50};
    std::unique_lock lock(mutex_);
    while (!ready()) {
      const auto now = Clock::now();
      if (now >= until || (stop != nullptr && stop->load(std::memory_order_relaxed))) return false;
      changed_.wait_until(lock, stop == nullptr ? until : std::min(until, now + kLook));
    }
    return true;
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
};

// Waits as Board::wait() does, and says whom for. `ask` finds that out into `so_far`, a value of
// the board's, in the loop's thread.
template <class Ready>
bool waitAloud(EtcdContext& context, Board& board, std::optional<Error>& so_far,
               Clock::time_point until, const StopFlag& stop, const Ready& ready,
               const std::function<void()>& ask) {
  base::Waiting waiting(context.waiting(), until);
  while (waiting.due() < until) {
    if (board.wait(waiting.due(), &stop, ready)) return true;
    if (stop.load(std::memory_order_relaxed)) return false;
    board.change([&] { so_far.reset(); });
    context.loop().post(ask);
    board.wait(std::min(until, Clock::now() + kAskTime), &stop, [&] { return ready() || so_far; });
    if (board.look(ready)) return true;
    waiting.tell(board.look([&] {
      return so_far.value_or(
          Error{.operation = context.text(), .detail = "it has not answered yet"});
    }));
  }
  return board.wait(until, &stop, ready);
}

}  // namespace viaduct::meet::etcd
