// The files of a node: of this machine, or of a folder that holds another machine's. A read says
// why it gave nothing, and the tree remembers what was there and could not be read, so that "could
// not look" is never taken for "fine". Threads: one at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/fd.h"

namespace viaduct::diag {

struct FileText {
  enum class State : std::uint8_t { kRead, kAbsent, kDenied, kUnreadable };
  State state = State::kAbsent;
  std::string text = {};    // without the line break at its end
  std::string reason = {};  // why it was not read: "Permission denied"
  explicit operator bool() const { return state == State::kRead; }
};

class Tree {
 public:
  // A file of the kernel has a few KiB. One that never ends must not hold us up.
  static constexpr std::size_t kMostBytes = std::size_t{4} << 20U;

  // Fails where there is no such folder.
  static std::optional<Tree> open(const std::string& root, std::string& why);

  // Whether it is the running machine.
  bool live() const { return root_ == "/"; }
  const std::string& root() const { return root_; }

  // Paths are those of the node: "/sys/class/net". A link leads to where it leads on the node, and
  // never out of the root.
  FileText read(const std::string& path) const;
  // The same for a file that need not be text, up to `bytes` of it.
  FileText readBytes(const std::string& path, std::size_t bytes) const;
  // A read whose failure means nothing: the kernel refuses to show an empty GID's type.
  FileText tryRead(const std::string& path) const;

  // The first line, without blanks at its ends; empty where it was not read.
  std::string line(const std::string& path) const;
  // A file that is one whole number, also a hexadecimal one.
  std::optional<std::uint64_t> number(const std::string& path) const;
  // Sorted. None: there is no such folder, or it is empty.
  std::vector<std::string> list(const std::string& folder) const;
  bool has(const std::string& path) const;
  // Where the path leads, without links: "/sys/devices/pci0000:00/...". Empty: nowhere.
  std::string resolve(const std::string& path) const;

  // A file that could not be read on the node itself, of which this folder is a copy: there it is
  // empty. A path without links.
  void markUnread(const std::string& path, const std::string& reason, bool denied);

  // All files that were there and not read, in the order of the first attempt.
  struct Unread {
    std::string path, reason;
    bool denied = false;  // another user may read it
  };
  const std::vector<Unread>& unread() const { return unread_; }
  // All files that were read or missed, and folders that were listed.
  const std::vector<std::string>& looked() const { return looked_; }

 private:
  Tree(std::string root, base::Fd folder) : root_(std::move(root)), folder_(std::move(folder)) {}
  FileText fetch(const std::string& path, std::size_t most) const;
  FileText fetchText(const std::string& path) const;
  std::vector<std::string> fetchNames(const std::string& folder) const;
  std::string fetchPlace(const std::string& path) const;
  void remember(const std::string& path, const FileText& found) const;
  const FileText* markedAt(const std::string& path) const;
  int openBelow(const std::string& path, int flags) const;

  std::string root_;  // "/", or without a slash at its end
  base::Fd folder_;
  std::map<std::string, FileText> marked_;
  // All topics read the same files. Those of a copy do not change, so each is read once.
  mutable std::map<std::string, FileText> texts_;
  mutable std::map<std::string, std::vector<std::string>> names_;
  mutable std::map<std::string, std::string> places_;
  mutable std::vector<Unread> unread_;
  mutable std::vector<std::string> looked_;
};

}  // namespace viaduct::diag
