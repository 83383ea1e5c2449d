// The interface of a meeting place, where processes find each other: a directory of names. Groups,
// which also form there, are in meet/groups/group.h, outside of libviaduct. Every wait ends at its
// deadline or at `stop`. Threads: any, several at once.
#pragma once

#include <viaduct/deadline.h>
#include <viaduct/result.h>

#include <cstddef>
#include <memory>
#include <string>

#include "base/stop.h"

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
};

}  // namespace viaduct::meet
