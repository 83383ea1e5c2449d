// An empty folder for a test. Threads: one at a time.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>

namespace viaduct::testing {

// A folder in memory if it has `room` bytes, because other tests keep the disk busy. Otherwise the
// usual folder for temporary files.
inline std::filesystem::path folderInMemory(std::uintmax_t room) {
  const char* const memory = "/dev/shm";
  std::error_code failed;
  const std::uintmax_t left = std::filesystem::space(memory, failed).available;
  const bool fits = !failed && left >= room && ::access(memory, W_OK) == 0;
  return fits ? memory : std::filesystem::temp_directory_path();
}

// A new folder, which the destructor removes with all its files.
class TemporaryFolder {
 public:
  TemporaryFolder() : TemporaryFolder(std::filesystem::temp_directory_path()) {}
  explicit TemporaryFolder(const std::filesystem::path& parent) {
    path_ = (parent / "viaduct-test-XXXXXX").string();
    if (::mkdtemp(path_.data()) == nullptr) ADD_FAILURE() << "mkdtemp " << path_;
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const std::string& path() const { return path_; }
  // Writes a file below the folder, such as "/proc/stat", and makes missing folders.
  void write(const std::string& file, const std::string& text) const {
    std::filesystem::create_directories(std::filesystem::path(path_ + file).parent_path());
    std::ofstream(path_ + file) << text;
  }

 private:
  std::string path_;
};

}  // namespace viaduct::testing
