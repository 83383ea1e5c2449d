// io_uring by system calls, so that neither the build nor the machine needs a library.
#include <fmt/format.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <bit>
#include <cerrno>
#include <cstring>

#include "backends/file/engine.h"
#include "base/fd.h"
#include "host/io_uring.h"

#if __has_include(<linux/io_uring.h>)
#include <linux/io_uring.h>
#endif

namespace viaduct::file {

#if defined(IORING_FEAT_NODROP) && defined(__NR_io_uring_setup)
namespace {

constexpr std::uint32_t kBuffers = 1024;  // places for registered buffers

class Mapping {
 public:
  Mapping() = default;
  Mapping(int fd, std::size_t bytes, off_t offset)
      : at_(::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, offset)),
        bytes_(bytes) {
    // A fork()ed child must not touch the parent's ring.
    if (at_ != MAP_FAILED) ::madvise(at_, bytes_, MADV_DONTFORK);
  }
  ~Mapping() {
    if (*this) ::munmap(at_, bytes_);
  }
  Mapping(Mapping&& other) noexcept
      : at_(std::exchange(other.at_, MAP_FAILED)), bytes_(other.bytes_) {}
  Mapping& operator=(Mapping&& other) noexcept {
    std::swap(at_, other.at_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  explicit operator bool() const { return at_ != MAP_FAILED; }
  template <class T>
  T* at(std::uint32_t offset) const {
    return reinterpret_cast<T*>(static_cast<std::byte*>(at_) + offset);
  }

 private:
  void* at_ = MAP_FAILED;
  std::size_t bytes_ = 0;
};

unsigned loadAcquire(unsigned& word) {
  return std::atomic_ref<unsigned>(word).load(std::memory_order_acquire);
}
void storeRelease(unsigned& word, unsigned value) {
  std::atomic_ref<unsigned>(word).store(value, std::memory_order_release);
}

class Uring final : public Engine {
 public:
  // Opened by the thread that uses it, as IORING_SETUP_SINGLE_ISSUER demands.
  int open(std::uint32_t depth, std::uint32_t files) {
    // Room for an I/O and its cancel for each token, and for the read of the bell.
    const unsigned entries = std::bit_ceil(2 * depth + 2);
    io_uring_params params{};
    if (const int error = host::openRing(entries, params, ring_); error != 0) return error;
    if (const int error = map(params); error != 0) return error;
    bell_.reset(::eventfd(0, EFD_CLOEXEC));  // blocking: a read of it waits in the ring
    if (!bell_) return errno;
    places_.assign(files, -1);
    fixed_files_ = enter(IORING_REGISTER_FILES, places_.data(), files) == 0;
    if (host::reserveBuffers(ring_.get(), kBuffers) == 0)
      for (std::uint32_t i = kBuffers; i > 0; --i)
        free_buffers_.push_back(static_cast<std::int32_t>(i - 1));
    listen();
    return 0;
  }

  std::string_view name() const override { return "uring"; }

  void start(std::uint32_t token, const Io& io) override {
    io_uring_sqe& sqe = next();
    const bool fixed = io.fixed_buffer >= 0;
    sqe.opcode = io.write ? (fixed ? IORING_OP_WRITE_FIXED : IORING_OP_WRITE)
                          : (fixed ? IORING_OP_READ_FIXED : IORING_OP_READ);
    const bool known = fixed_files_ && io.fixed_file >= 0;
    sqe.flags = known ? IOSQE_FIXED_FILE : 0;
    sqe.fd = known ? io.fixed_file : io.fd;
    sqe.addr = reinterpret_cast<std::uintptr_t>(io.memory);
    sqe.len = io.bytes;
    sqe.off = io.offset;
    if (fixed) sqe.buf_index = static_cast<std::uint16_t>(io.fixed_buffer);
    sqe.user_data = token;
  }

  void cancel(std::uint32_t token) override {
    io_uring_sqe& sqe = next();
    sqe.opcode = IORING_OP_ASYNC_CANCEL;
    sqe.addr = token;
    sqe.user_data = kCancel;
  }

  void wait(bool block, std::vector<Ended>& ended) override {
    // The kernel appends completions only while this thread is inside the call.
    const unsigned queued = tail_ - submitted_;
    storeRelease(*sq_tail_, tail_);
    const bool waits = block && loadAcquire(*cq_tail_) == *cq_head_;
    const long taken = ::syscall(__NR_io_uring_enter, ring_.get(), queued, waits ? 1U : 0U,
                                 IORING_ENTER_GETEVENTS, nullptr, 0);
    if (taken > 0) submitted_ += static_cast<unsigned>(taken);
    reap(ended);
  }

  void wake() override {
    const std::uint64_t one = 1;
    [[maybe_unused]] const auto written = ::write(bell_.get(), &one, sizeof one);
  }

  bool registerFile(std::uint32_t place, int fd) override {
    return fixed_files_ && place < places_.size() && updateFile(place, fd);
  }
  void unregisterFile(std::uint32_t place) override {
    if (fixed_files_ && place < places_.size()) updateFile(place, -1);
  }
  std::int32_t registerBuffer(std::span<std::byte> memory) override {
    if (free_buffers_.empty()) return -1;
    const std::int32_t place = free_buffers_.back();
    if (host::registerBuffer(ring_.get(), static_cast<std::uint32_t>(place), memory) != 0)
      return -1;
    free_buffers_.pop_back();
    return place;
  }
  void unregisterBuffer(std::int32_t buffer) override {
    if (host::registerBuffer(ring_.get(), static_cast<std::uint32_t>(buffer), {}) == 0)
      free_buffers_.push_back(buffer);
  }

 private:
  static constexpr std::uint64_t kBell = ~std::uint64_t{0}, kCancel = kBell - 1;

  int map(const io_uring_params& params) {
    const auto& sq = params.sq_off;
    const auto& cq = params.cq_off;
    const std::size_t bytes =
        std::max(sq.array + params.sq_entries * sizeof(unsigned),
                 cq.cqes + static_cast<std::size_t>(params.cq_entries) * sizeof(io_uring_cqe));
    rings_ = Mapping(ring_.get(), bytes, IORING_OFF_SQ_RING);
    entries_ = Mapping(ring_.get(), params.sq_entries * sizeof(io_uring_sqe), IORING_OFF_SQES);
    if (!rings_ || !entries_) return errno;
    sq_tail_ = rings_.at<unsigned>(sq.tail);
    sq_mask_ = *rings_.at<unsigned>(sq.ring_mask);
    sqes_ = entries_.at<io_uring_sqe>(0);
    for (unsigned i = 0; i < params.sq_entries; ++i) rings_.at<unsigned>(sq.array)[i] = i;
    cq_head_ = rings_.at<unsigned>(cq.head);
    cq_tail_ = rings_.at<unsigned>(cq.tail);
    cq_mask_ = *rings_.at<unsigned>(cq.ring_mask);
    cqes_ = rings_.at<io_uring_cqe>(cq.cqes);
    return 0;
  }

  // The queue has room for all that can be in flight.
  io_uring_sqe& next() {
    io_uring_sqe& sqe = sqes_[tail_++ & sq_mask_];
    std::memset(&sqe, 0, sizeof sqe);
    return sqe;
  }

  void listen() {
    io_uring_sqe& sqe = next();
    sqe.opcode = IORING_OP_READ;
    sqe.fd = bell_.get();
    sqe.addr = reinterpret_cast<std::uintptr_t>(&rings_of_bell_);
    sqe.len = sizeof rings_of_bell_;
    sqe.user_data = kBell;
  }

  void reap(std::vector<Ended>& ended) {
    unsigned head = *cq_head_;
    const unsigned tail = loadAcquire(*cq_tail_);
    bool rung = false;
    for (; head != tail; ++head) {
      const io_uring_cqe& cqe = cqes_[head & cq_mask_];
      if (cqe.user_data == kBell)
        rung = true;
      else if (cqe.user_data != kCancel)
        ended.push_back({static_cast<std::uint32_t>(cqe.user_data), cqe.res});
    }
    storeRelease(*cq_head_, head);
    if (rung) listen();
  }

  int enter(unsigned what, void* argument, unsigned count) const {
    return static_cast<int>(::syscall(__NR_io_uring_register, ring_.get(), what, argument, count));
  }
  bool updateFile(std::uint32_t place, int fd) {
    places_[place] = fd;
    io_uring_files_update update{};
    update.offset = place;
    update.fds = reinterpret_cast<std::uintptr_t>(&places_[place]);
    return enter(IORING_REGISTER_FILES_UPDATE, &update, 1) == 1;
  }

  base::Fd bell_;
  std::uint64_t rings_of_bell_ = 0;
  std::vector<int> places_;
  std::vector<std::int32_t> free_buffers_;
  bool fixed_files_ = false;
  // Closed first, and then the kernel ends its work in the background.
  Mapping rings_, entries_;
  base::Fd ring_;
  unsigned* sq_tail_ = nullptr;
  unsigned* cq_head_ = nullptr;
  unsigned* cq_tail_ = nullptr;
  io_uring_sqe* sqes_ = nullptr;
  io_uring_cqe* cqes_ = nullptr;
  unsigned sq_mask_ = 0, cq_mask_ = 0;
  unsigned tail_ = 0, submitted_ = 0;
};

}  // namespace

std::unique_ptr<Engine> openUring(std::uint32_t depth, std::uint32_t files, std::string& why) {
  auto uring = std::make_unique<Uring>();
  const int error = uring->open(depth, files);
  if (error == 0) return uring;
  why = fmt::format("io_uring_setup: {}", std::strerror(error));
  return nullptr;
}

#else

std::unique_ptr<Engine> openUring(std::uint32_t, std::uint32_t, std::string& why) {
  why = "this build has no <linux/io_uring.h>";
  return nullptr;
}

#endif

}  // namespace viaduct::file
