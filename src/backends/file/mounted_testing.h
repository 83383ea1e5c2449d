// File systems that a test mounts. Threads: one at a time.
#pragma once

#include <sys/mount.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>

#include "support/loop_device.h"

namespace viaduct::testing {

// A file system that is mounted on a new folder until the object dies. Needs the right to mount.
class Mounted {
 public:
  Mounted(std::string at, const char* type, const std::string& source, const std::string& options)
      : at_(std::move(at)) {
    std::filesystem::create_directory(at_);
    mounted_ = ::mount(source.c_str(), at_.c_str(), type, 0, options.c_str()) == 0;
  }
  ~Mounted() {
    if (mounted_) ::umount2(at_.c_str(), MNT_DETACH);
  }
  Mounted(const Mounted&) = delete;
  Mounted& operator=(const Mounted&) = delete;
  explicit operator bool() const { return mounted_; }
  const std::string& path() const { return at_; }

 private:
  std::string at_;
  bool mounted_ = false;
};

// An ext4 of 16 MiB.
class MountedExt4 {
 public:
  explicit MountedExt4(const std::string& at) {
    const std::string image = at + ".image";
    std::ofstream(image).close();
    std::filesystem::resize_file(image, 16U << 20U);
    if (std::system(("mkfs.ext4 -q " + image + " 2>/dev/null").c_str()) != 0) return;
    device_.emplace(image);
    mounted_.emplace(at, "ext4", device_->name(), "");
  }
  explicit operator bool() const { return mounted_ && *mounted_; }

 private:
  std::optional<LoopDevice> device_;
  std::optional<Mounted> mounted_;
};

}  // namespace viaduct::testing
