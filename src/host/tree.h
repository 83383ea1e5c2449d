// A machine's files: of this machine, or of a folder with another machine's files. A failed read
// says why. The tree remembers files that it could not read, so that "could not look" is never
// taken for "fine". Threads: one at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/fd.h"

namespace viaduct::host {

struct FileText {
  enum class State : std::uint8_t { kRead, kAbsent, kDenied, kUnreadable };
  State state = State::kAbsent;
  std::string text = {};    // without the final line break
  std::string reason = {};  // why the read failed: "Permission denied"
  explicit operator bool() const { return state == State::kRead; }
};

// The first line that contains `part`; empty: there is none.
std::string lineWith(std::string_view text, std::string_view part);
// The value of the first line "Key:   value" in a text, without quotes; empty: there is none. Tabs
// may stand before the separator.
std::string valueIn(std::string_view text, std::string_view key, char separator = ':');

class Tree {
 public:
  // Files of the kernel have a few KiB. The limit protects against a file that never ends.
  static constexpr std::size_t kMostBytes = std::size_t{4} << 20U;

  // This machine. Each opening of an agent makes some trees. They open nothing and use no stream,
  // because the first stream of a process costs a quarter of a millisecond: docs/measured/agent.md.
  Tree() = default;
  // The files below a folder. Without that folder, all files are unreadable.
  explicit Tree(const std::string& root);
  // Fails if there is no such folder.
  static std::optional<Tree> open(const std::string& root, std::string& why);

  // Whether this is the running machine.
  bool live() const { return root_ == "/"; }
  const std::string& root() const { return root_; }

  // Reads a file. Paths are the node's: "/sys/class/net". A link leads to its target on the node,
  // and never out of the root.
  FileText read(const std::string& path) const;
  // The same for a binary file, up to `bytes` of it.
  FileText readBytes(const std::string& path, std::size_t bytes) const;
  // A read whose failure is not remembered: for example, the kernel refuses to show the type of an
  // empty GID.
  FileText tryRead(const std::string& path) const;

  // The first line, without blanks at its ends; empty after a failed read.
  std::string line(const std::string& path) const;
  // All lines but empty ones.
  std::vector<std::string> lines(const std::string& path) const;
  // A file that contains one whole number, decimal or hexadecimal.
  std::optional<std::uint64_t> number(const std::string& path) const;
  // Sorted names. Empty: there is no such folder, or it is empty.
  std::vector<std::string> list(const std::string& folder) const;
  bool has(const std::string& path) const;
  // The path without links: "/sys/devices/pci0000:00/...". Empty: it leads nowhere.
  std::string resolve(const std::string& path) const;

  // For a tree that is a copy of a node. Marks a file that could not be read on the node, and is
  // empty in the copy. The path must not go through symbolic links.
  void markUnread(const std::string& path, const std::string& reason, bool denied);

  // Files that exist but could not be read, in the order of the first attempt.
  struct Unread {
    std::string path, reason;
    bool denied = false;  // another user may read it
  };
  const std::vector<Unread>& unread() const { return unread_; }
  // All paths that were asked for. A listed folder ends with a slash.
  const std::vector<std::string>& looked() const { return looked_; }

 private:
  using Reader = int (*)(int fd, std::string& into, std::size_t most);
  FileText look(const std::string& path, Reader reader) const;
  FileText fetch(const std::string& path, std::size_t most, Reader reader) const;
  FileText fetchText(const std::string& path, Reader reader) const;
  std::vector<std::string> fetchNames(const std::string& folder) const;
  std::string fetchPlace(const std::string& path) const;
  void remember(const std::string& path, const FileText& found) const;
  const FileText* markedAt(const std::string& path) const;
  int openBelow(const std::string& path, int flags) const;

  std::string root_ = "/";  // or a path without a final slash
  base::Fd folder_;
  std::map<std::string, FileText> marked_;
  // Caches a copy's files, because all checks of the doctor read the same files and a copy does not
  // change.
  mutable std::map<std::string, FileText> texts_;
  mutable std::map<std::string, std::vector<std::string>> names_;
  mutable std::map<std::string, std::string> places_;
  mutable std::vector<Unread> unread_;
  mutable std::vector<std::string> looked_;
};

}  // namespace viaduct::host
