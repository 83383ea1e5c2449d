// A file system that stops answering, served by a child process (FUSE, without its library). It has
// one file. The test's own process cannot serve it: its exit would wait for its own answer.
// Threads: the test's.
#pragma once

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/fuse.h>
#include <poll.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/fd.h"

namespace viaduct::testing {

// The server of the file system, which runs in the child process.
class HungDiskServer {
 public:
  static constexpr std::uint64_t kFileBytes = 1U << 20U;
  static constexpr char kByte = 'x';                               // all bytes of the file
  static constexpr char kHang = 'h', kWait = 'w', kRelease = 'r';  // commands

  HungDiskServer(int fuse, int control) : fuse_(fuse), control_(control) {}
  // Serves until the other end of `control` closes.
  void run() {
    std::vector<char> buffer(FUSE_MIN_READ_BUFFER + (128U << 10U));
    for (;;) {
      std::array<pollfd, 2> waits{{{fuse_, POLLIN, 0}, {control_, POLLIN, 0}}};
      ::poll(waits.data(), waits.size(), -1);
      if (waits[1].revents != 0 && !obey()) return;
      if (waits[0].revents == 0) continue;
      const ssize_t got = ::read(fuse_, buffer.data(), buffer.size());
      if (got >= static_cast<ssize_t>(sizeof(fuse_in_header)))
        take({buffer.data(), static_cast<std::size_t>(got)});
    }
  }

 private:
  static constexpr std::uint64_t kRoot = FUSE_ROOT_ID, kFile = 2, kForever = 1U << 20U;

  struct Request {
    fuse_in_header head = {};
    fuse_read_in read = {};
    std::string name = {};
  };

  // False: the test has closed its end.
  bool obey() {
    char command = 0;
    if (::recv(control_, &command, 1, 0) != 1) return false;
    waited_ = command == kWait;
    if (command == kHang) hangs_ = true;
    if (command == kRelease) {
      hangs_ = false;
      for (const Request& request : held_) answer(request);
      held_.clear();
    }
    if (!waited_ || !held_.empty()) confirm();
    return true;
  }
  void confirm() {
    waited_ = false;
    [[maybe_unused]] const auto sent = ::send(control_, &kWait, 1, MSG_NOSIGNAL);
  }
  void take(std::span<const char> message) {
    Request request;
    std::memcpy(&request.head, message.data(), sizeof request.head);
    const auto rest = message.subspan(sizeof request.head);
    if (request.head.opcode == FUSE_READ)
      std::memcpy(&request.read, rest.data(), std::min(rest.size(), sizeof request.read));
    if (request.head.opcode == FUSE_LOOKUP) request.name = rest.data();
    const bool held =
        hangs_ && (request.head.opcode == FUSE_READ || request.head.opcode == FUSE_OPEN);
    if (!held) return answer(request);
    held_.push_back(request);
    if (waited_) confirm();
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
      case FUSE_INTERRUPT:  // the read goes on, as a read of a real disk does
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
    [[maybe_unused]] const auto written = ::write(fuse_, message.data(), message.size());
  }

  const int fuse_, control_;
  bool hangs_ = false, waited_ = false;
  std::vector<Request> held_;
};

class HungDisk {
 public:
  static constexpr std::uint64_t kFileBytes = HungDiskServer::kFileBytes;
  static constexpr char kByte = HungDiskServer::kByte;

  explicit HungDisk(const std::string& at) : at_(at) {
    std::filesystem::create_directory(at_);
    const base::Fd fuse(::open("/dev/fuse", O_RDWR | O_CLOEXEC | O_NONBLOCK));
    std::array<int, 2> ends{};
    if (!fuse || ::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0) return;
    control_.reset(ends[0]);
    const base::Fd theirs(ends[1]);
    child_ = ::fork();
    if (child_ == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      control_.reset();
      HungDiskServer(fuse.get(), theirs.get()).run();
      ::_exit(0);
    }
    const auto options = fmt::format("fd={},rootmode=40000,user_id={},group_id={}", fuse.get(),
                                     ::getuid(), ::getgid());
    mounted_ =
        ::mount("viaduct-test", at_.c_str(), "fuse", MS_NOSUID | MS_NODEV, options.c_str()) == 0;
  }
  // Ends all calls that still hang, with an error.
  ~HungDisk() {
    control_.reset();  // ends the child
    if (child_ > 0) ::waitpid(child_, nullptr, 0);
    if (mounted_) ::umount2(at_.c_str(), MNT_DETACH);
  }
  HungDisk(const HungDisk&) = delete;
  HungDisk& operator=(const HungDisk&) = delete;

  // False: no right to mount.
  bool mounted() const { return mounted_; }
  std::string file() const { return at_ + "/data"; }

  // From now on, opens and reads of the file hang.
  void hang() { tell(HungDiskServer::kHang); }
  // Waits until an open or a read of the file hangs.
  bool waitForHung() { return tell(HungDiskServer::kWait); }
  // Answers all hanging calls, and later calls at once.
  void release() { tell(HungDiskServer::kRelease); }

 private:
  // Sends a command to the child, and waits for its answer.
  bool tell(char command) {
    pollfd answer{.fd = control_.get(), .events = POLLIN, .revents = 0};
    return ::send(control_.get(), &command, 1, MSG_NOSIGNAL) == 1 &&
           ::poll(&answer, 1, 30'000) == 1 && ::recv(control_.get(), &command, 1, 0) == 1;
  }

  const std::string at_;
  base::Fd control_;
  pid_t child_ = -1;
  bool mounted_ = false;
};

}  // namespace viaduct::testing
