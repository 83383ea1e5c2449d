// A file whose content is replaced as a whole: a reader and a crash find the old content or the new
// one. Threads: one at a time.
#pragma once

#include <viaduct/result.h>

#include <string>
#include <string_view>
#include <utility>

namespace viaduct::base {

class ReplacedFile {
 public:
  // Checks that the content can be replaced, and changes nothing. Links are followed. `operation`
  // begins the errors.
  static Result<ReplacedFile> open(std::string operation, const std::string& name);
  // A file that only this user may read. The new file replaces anything that has the name, and a
  // link is not followed.
  static Result<ReplacedFile> openPrivate(std::string operation, const std::string& name);

  // Writes a new file beside the old one, and gives it the old one's name, rights and owner. Writes
  // in place to a device, a FIFO or an open descriptor. Also to a file that no new one can replace:
  // a mount point, or one in a folder that takes no new file. The old content stays if the disk is
  // full.
  Status write(std::string_view content) const;

 private:
  ReplacedFile(std::string operation, std::string name, std::string target)
      : operation_(std::move(operation)), name_(std::move(name)), target_(std::move(target)) {}
  Error failed(int os_errno) const;
  Status overwrite(std::string_view content) const;

  std::string operation_, name_, target_;  // the given name, and the target of its links
  bool private_ = false, in_place_ = false;
};

}  // namespace viaduct::base
