// The interface of a meeting place, where processes find each other: a directory of names. Groups,
// which also form there, are in meet/groups/group.h, outside of libviaduct. Every wait ends at its
// deadline or at `stop`. Threads: any, several at once.
#pragma once

#include <viaduct/deadline.h>
#include <viaduct/result.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/stop.h"
#include "meet/wait.h"

namespace viaduct::meet {

using base::StopFlag;

inline constexpr std::size_t kMaxNameBytes = 255;     // of entries, groups, members, namespaces
inline constexpr std::size_t kMaxReasonBytes = 4096;  // of each text of an error
inline constexpr std::size_t kMaxValueBytes = std::size_t{256} * 1024;  // published, gathered

// Refuses an entry of the directory beyond the limits.
Status checkEntry(const std::string& operation, const std::string& name,
                  const std::string& value = {});

// A name in the directory. The destructor removes it, and so does the end of this process.
class PublishedName {
 public:
  virtual ~PublishedName() = default;
  // Removes the name soon, and does not wait for it. Threads: any.
  virtual void withdrawSoon() {}
};

// A key that one process of several may have. The parts of the key are escaped(), and joined by
// slashes.
struct Claim {
  std::string key = {}, value = {};
  // Called by the place's thread when the key may belong to another process. If empty, the place
  // publishes the key again.
  std::function<void(const Error&)> lost = {};
};

class MeetingPlace {
 public:
  virtual ~MeetingPlace() = default;
  // Fails if the name belongs to another living process.
  virtual Result<std::unique_ptr<PublishedName>> publish(const std::string& name,
                                                         const std::string& value,
                                                         Deadline until) = 0;
  // Waits for the name up to `until`.
  virtual Result<std::string> find(const std::string& name, Deadline until,
                                   const StopFlag& stop) = 0;

  // An election needs claim() and await(). By default, they call publish() and find() with the key.
  // claim() publishes the key. Null: another process has it.
  virtual Result<std::unique_ptr<PublishedName>> claim(const Claim& claim, const Wait& wait);
  // Waits until `enough` accepts the value of the key. Nothing: no living process has it.
  using Held = std::optional<std::string>;
  using Enough = std::function<bool(const Held&)>;
  virtual Result<Held> await(const std::string& key, const Enough& enough, const Wait& wait);

  virtual void closeIdle() {}  // closes idle connections, as no call is expected soon
};

}  // namespace viaduct::meet
