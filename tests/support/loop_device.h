// A block device on a file, until the object dies. Its name is empty where the system has no loop
// devices, or where the user may not make them.
#pragma once

#include <array>
#include <cstdio>
#include <cstdlib>
#include <string>

namespace viaduct::testing {

class LoopDevice {
 public:
  explicit LoopDevice(const std::string& file) {
    FILE* const out = ::popen(("losetup --find --show " + file + " 2>/dev/null").c_str(), "r");
    std::array<char, 64> line{};
    if (std::fgets(line.data(), line.size(), out) != nullptr)
      name_ = std::string(line.data()).substr(0, std::string(line.data()).find('\n'));
    ::pclose(out);
  }
  ~LoopDevice() {
    if (!name_.empty()) static_cast<void>(!std::system(("losetup --detach " + name_).c_str()));
  }
  LoopDevice(const LoopDevice&) = delete;
  LoopDevice& operator=(const LoopDevice&) = delete;
  const std::string& name() const { return name_; }

 private:
  std::string name_;
};

}  // namespace viaduct::testing
