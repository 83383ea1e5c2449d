// A file system of the test's own process (FUSE, without its library) that stops answering. It has
// one file. Threads: the test's; a thread of its own serves the kernel.
#pragma once

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/fuse.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <filesystem>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/fd.h"

namespace viaduct::testing {

class HungDisk {
 public:
  static constexpr std::uint64_t kFileBytes = 1U << 20U;
  static constexpr char kByte = 'x';  // all bytes of the file

  explicit HungDisk(const std::string& at) : at_(at), fuse_(::open("/dev/fuse", kFlags)) {
    std::filesystem::create_directory(at_);
    const auto options = fmt::format("fd={},rootmode=40000,user_id={},group_id={}", fuse_.get(),
                                     ::getuid(), ::getgid());
    mounted_ = fuse_ && ::mount("viaduct-test", at_.c_str(), "fuse", MS_NOSUID | MS_NODEV,
                                options.c_str()) == 0;
    if (mounted_) thread_ = std::thread([this] { serve(); });
  }
  // Ends all calls that still hang, with an error.
  ~HungDisk() {
    if (!mounted_) return;
    ::umount2(at_.c_str(), MNT_DETACH);
    const std::uint64_t one = 1;
    [[maybe_unused]] const auto written = ::write(end_.get(), &one, sizeof one);
    thread_.join();
  }
  HungDisk(const HungDisk&) = delete;
  HungDisk& operator=(const HungDisk&) = delete;

  // False: no right to mount.
  bool mounted() const { return mounted_; }
  std::string file() const { return at_ + "/data"; }

  // From now on, opens and reads of the file hang.
  void hang() {
    const std::lock_guard lock(mutex_);
    hangs_ = true;
  }
  // Waits until so many calls hang.
  bool waitForHung(std::size_t count) {
    std::unique_lock lock(mutex_);
    return news_.wait_for(lock, std::chrono::seconds(30), [&] { return held_.size() >= count; });
  }
  // Answers them, and all later ones.
  void release() {
    const std::lock_guard lock(mutex_);
    hangs_ = false;
    for (const Request& request : held_) answer(request);
    held_.clear();
  }

 private:
  static constexpr int kFlags = O_RDWR | O_CLOEXEC | O_NONBLOCK;
  static constexpr std::uint64_t kRoot = FUSE_ROOT_ID, kFile = 2, kForever = 1U << 20U;

  struct Request {
    fuse_in_header head = {};
    fuse_read_in read = {};
    std::string name = {};
  };

  void serve() {
    std::vector<char> buffer(FUSE_MIN_READ_BUFFER + (128U << 10U));
    for (;;) {
      pollfd waits[] = {{fuse_.get(), POLLIN, 0}, {end_.get(), POLLIN, 0}};
      ::poll(waits, 2, -1);
      if (waits[1].revents != 0) return;
      const ssize_t got = ::read(fuse_.get(), buffer.data(), buffer.size());
      if (got >= static_cast<ssize_t>(sizeof(fuse_in_header)))
        take({buffer.data(), static_cast<std::size_t>(got)});
    }
  }
  void take(std::span<const char> message) {
    Request request;
    std::memcpy(&request.head, message.data(), sizeof request.head);
    const auto rest = message.subspan(sizeof request.head);
    if (request.head.opcode == FUSE_READ)
      std::memcpy(&request.read, rest.data(), std::min(rest.size(), sizeof request.read));
    if (request.head.opcode == FUSE_LOOKUP) request.name = rest.data();
    const std::lock_guard lock(mutex_);
    const bool held =
        hangs_ && (request.head.opcode == FUSE_READ || request.head.opcode == FUSE_OPEN);
    if (!held) return answer(request);
    held_.push_back(request);
    news_.notify_all();
  }
  static fuse_attr attributesOf(std::uint64_t node) {
    fuse_attr out{};
    out.ino = node;
    out.mode = node == kRoot ? S_IFDIR | 0755U : S_IFREG | 0644U;
    out.size = node == kRoot ? 0 : kFileBytes;
    out.nlink = 1;
    out.uid = ::getuid();
    out.gid = ::getgid();
    out.blksize = 4096;
    return out;
  }
  static fuse_init_out limits() {
    fuse_init_out out{};
    out.major = FUSE_KERNEL_VERSION;
    out.minor = FUSE_KERNEL_MINOR_VERSION;
    out.max_write = 4096;
    return out;
  }
  static fuse_entry_out entry() {
    fuse_entry_out out{};
    out.nodeid = kFile;
    out.entry_valid = out.attr_valid = kForever;
    out.attr = attributesOf(kFile);
    return out;
  }
  static fuse_attr_out attributesReply(std::uint64_t node) {
    fuse_attr_out out{};
    out.attr_valid = kForever;
    out.attr = attributesOf(node);
    return out;
  }
  void answer(const Request& request) {
    switch (request.head.opcode) {
      case FUSE_INIT:
        return reply(request, limits());
      case FUSE_LOOKUP:
        return request.name == "data" ? reply(request, entry()) : refuse(request, ENOENT);
      case FUSE_GETATTR:
        return reply(request, attributesReply(request.head.nodeid));
      case FUSE_OPEN:
        return reply(request, fuse_open_out{});
      case FUSE_READ:
        return send(request, 0, std::string(bytesFor(request.read), kByte));
      case FUSE_STATFS:
        return reply(request, fuse_statfs_out{});
      case FUSE_FLUSH:
      case FUSE_RELEASE:
        return send(request, 0, {});
      case FUSE_FORGET:
      case FUSE_BATCH_FORGET:
      case FUSE_INTERRUPT:  // the read goes on, as one does that a disk has
        return;
      default:
        return refuse(request, ENOSYS);
    }
  }
  static std::uint64_t bytesFor(const fuse_read_in& read) {
    return std::min<std::uint64_t>(read.size, kFileBytes - std::min(read.offset, kFileBytes));
  }
  template <class Body>
  void reply(const Request& request, const Body& body) {
    send(request, 0, {reinterpret_cast<const char*>(&body), sizeof body});
  }
  void refuse(const Request& request, int error) { send(request, -error, {}); }
  void send(const Request& request, int error, std::string_view body) {
    const fuse_out_header head{.len = static_cast<std::uint32_t>(sizeof head + body.size()),
                               .error = error,
                               .unique = request.head.unique};
    std::string message(reinterpret_cast<const char*>(&head), sizeof head);
    message += body;
    [[maybe_unused]] const auto written = ::write(fuse_.get(), message.data(), message.size());
  }

  const std::string at_;
  const base::Fd fuse_, end_{::eventfd(0, EFD_CLOEXEC)};
  bool mounted_ = false;
  std::mutex mutex_;
  std::condition_variable news_;
  bool hangs_ = false;
  std::vector<Request> held_;
  std::thread thread_;
};

}  // namespace viaduct::testing
