// The common part of places whose server only stores values, such as etcd. Such a place claims and
// awaits keys, and this class publishes and finds names with them. Threads: any, several at once.
#pragma once

#include <viaduct/deadline.h>
#include <viaduct/result.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/waiting.h"
#include "meet/meeting.h"
#include "meet/records.h"

namespace viaduct::meet {

class StoredPlace : public MeetingPlace {
 public:
  Result<std::unique_ptr<PublishedName>> publish(const std::string& name, const std::string& value,
                                                 Deadline until) final;
  Result<std::string> find(const std::string& name, Deadline until, const StopFlag& stop) final;
  Result<Held> await(const std::string& key, const Enough& enough, const Wait& wait) final;

 protected:
  // The beginning of the keys of published names, which are escaped().
  static constexpr std::string_view kNames = "name/";
  // The state of the owner of an entry that awaitEntry() shows.
  enum class Taken : std::uint8_t { kLives, kMayBeDead };
  // `text`: the server, for people. `free_after`: the longest time for which the name of a dead
  // process still looks taken.
  StoredPlace(std::string text, Taken taken, Duration free_after, base::SayWaiting say)
      : text_(std::move(text)),
        taken_(taken),
        free_after_(free_after),
        say_waiting_(std::move(say)) {}

  const std::string& text() const { return text_; }

  // Like await(), for the entry of a key. An entry of a dead process counts as no entry.
  using EnoughEntry = std::function<bool(const std::optional<Entry>&)>;
  virtual Result<std::optional<Entry>> awaitEntry(const std::string& key, const EnoughEntry& enough,
                                                  const Wait& wait) = 0;

 private:
  const std::string text_;
  const Taken taken_;
  const Duration free_after_;
  const base::SayWaiting say_waiting_;
};

// Deadline::never() becomes a year, so that later additions do not overflow.
Clock::time_point clamped(Deadline until);

// The error of a key that holds something else than an entry.
Error foreignData(const std::string& operation, const std::string& key);

}  // namespace viaduct::meet
