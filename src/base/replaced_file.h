// A file whose content is replaced as a whole: a reader and a crash find the old content or the new
// one. Threads: one at a time.
#pragma once

#include <sys/types.h>
#include <viaduct/result.h>

#include <string>
#include <string_view>

namespace viaduct::base {

class ReplacedFile {
 public:
  // Checks that the content can be replaced, and changes nothing. Links are followed. `operation`
  // is that of the errors; `mode` is for a new file.
  static Result<ReplacedFile> open(std::string operation, const std::string& name,
                                   mode_t mode = 0666);

  // Writes a file beside the old one, which then takes its place, its rights and its owner. Writes
  // in place to a device or FIFO, and to a file that no other one can replace: a mount point, or
  // one in a folder that takes no new file. The old content stays if the disk is full.
  Status write(std::string_view content) const;

 private:
  ReplacedFile(std::string operation, std::string name, std::string target, mode_t mode)
      : operation_(std::move(operation)),
        name_(std::move(name)),
        target_(std::move(target)),
        mode_(mode) {}
  Error failed(int os_errno) const;
  Status overwrite(std::string_view content) const;

  std::string operation_, name_, target_;  // the given name, and the target of its links
  mode_t mode_ = 0;
  bool in_place_ = false;
};

}  // namespace viaduct::base
