// Calls to a TCPStore. A call repeats over new connections until its deadline, with growing random
// pauses. Threads: any, several at once; a call blocks its thread.
#pragma once

#include <viaduct/deadline.h>
#include <viaduct/result.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "meet/tcpstore/connection.h"
#include "meet/wait.h"

namespace viaduct::meet::tcpstore {

class Client {
 public:
  explicit Client(std::string where);  // "host:port"

  const std::string& text() const { return text_; }  // "tcpstore host:port"

  // The value of a key. Nothing: there is no such key.
  Result<std::optional<std::string>> read(const std::string& key, const Wait& wait);
  // Stores `desired` if the key's value is `expected`; an absent key has the value "". Returns the
  // value afterwards. `desired` must be unique, because a repeated call has to recognise it.
  Result<std::string> compareSet(const std::string& key, const std::string& expected,
                                 const std::string& desired, const Wait& wait);
  // Returns once the store has the value.
  Status set(const std::string& key, const std::string& value, const Wait& wait);
  // Waits for the key up to `until`. False: it is not there yet, or the connection was lost, after
  // which the store may be a new one. `before`: a key that the call sets first; empty: none.
  Result<bool> awaitKey(const std::string& key, Clock::time_point until, const Wait& wait,
                        const std::string& before = {});

  // The pauses between tries to reach a store.
  static BackOff pauses() { return {std::chrono::milliseconds(50), std::chrono::seconds(4)}; }
  // A new connection in the store's dialect, for a caller with its own thread.
  Result<std::unique_ptr<Connection>> connect(const Limits& limits);
  void closeIdle();

 private:
  using Use = std::function<Result<Answer>(Connection&, const Limits&)>;
  class Call;
  Result<Answer> call(const Wait& wait, const Use& use);
  std::unique_ptr<Connection> takeIdle();
  void keepIdle(std::unique_ptr<Connection> connection);
  Limits limitsOf(const Wait& wait, std::function<bool()> goes_on) const;

  const std::string where_, text_;
  std::mutex mutex_;
  std::optional<Dialect> dialect_;
  std::vector<std::unique_ptr<Connection>> idle_;
};

// A failure of the store as an error of the caller's operation.
Error explained(Error why, const std::string& operation, const std::string& store);

}  // namespace viaduct::meet::tcpstore
