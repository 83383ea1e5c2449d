// io_uring by system calls, so that neither the build nor the machine needs a library.
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
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
namespace {

Error refused(const char* why) {
  return {.code = Code::kUnsupported,
          .operation = "io_uring_setup",
          .detail = why,
          .device = "file",
          .cause = "a container's seccomp profile, or kernel.io_uring_disabled",
          .remedy = "set VIADUCT_FILE_ENGINE to auto or threads"};
}

}  // namespace

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
  // `threads` carries out I/Os that would block, so the kernel starts no threads for this ring.
  // Kernel threads belong to the submitting thread, and its end would cancel their work or wait for
  // it.
  explicit Uring(std::unique_ptr<Engine> threads) : threads_(std::move(threads)) {}

  int open(std::uint32_t depth, std::uint32_t files) {
    io_uring_params params{};
    if (const int error = host::openRing(std::bit_ceil(depth), params, ring_); error != 0)
      return error;
    if (const int error = map(params); error != 0) return error;
    places_.assign(files, -1);
    fixed_files_ = enter(IORING_REGISTER_FILES, places_.data(), files) == 0;
    if (host::reserveBuffers(ring_.get(), kBuffers) == 0)
      for (std::uint32_t i = kBuffers; i > 0; --i)
        free_buffers_.push_back(static_cast<std::int32_t>(i - 1));
    return 0;
  }

  std::string_view name() const override { return "uring"; }
  std::vector<int> fds() const override {
    std::vector<int> out = threads_->fds();
    out.push_back(ring_.get());
    return out;
  }

  void start(std::uint32_t token, const Io& io) override {
    if (io.blocks) return threads_->start(token, io);
    io_uring_sqe& sqe = sqes_[tail_++ & sq_mask_];  // there is room for each token
    std::memset(&sqe, 0, sizeof sqe);
    const bool fixed = io.fixed_buffer >= 0;
    sqe.opcode = io.write ? (fixed ? IORING_OP_WRITE_FIXED : IORING_OP_WRITE)
                          : (fixed ? IORING_OP_READ_FIXED : IORING_OP_READ);
    const bool known = fixed_files_ && io.fixed_file >= 0;
    sqe.flags = known ? IOSQE_FIXED_FILE : 0;
    sqe.fd = known ? io.fixed_file : io.fd;
    sqe.addr = reinterpret_cast<std::uintptr_t>(io.memory);
    sqe.len = io.bytes;
    sqe.off = io.offset;
    sqe.rw_flags = RWF_NOWAIT;
    if (fixed) sqe.buf_index = static_cast<std::uint16_t>(io.fixed_buffer);
    sqe.user_data = token;
  }
  void call(std::uint32_t token, std::function<int()> call) override {
    threads_->call(token, std::move(call));
  }
  void cancel(std::uint32_t token) override { threads_->cancel(token); }

  bool submit() override {
    storeRelease(*sq_tail_, tail_);
    while (submitted_ != tail_) {
      const long taken = ::syscall(__NR_io_uring_enter, ring_.get(), tail_ - submitted_, 0U, 0U,
                                   nullptr, std::size_t{0});
      if (taken > 0)
        submitted_ += static_cast<unsigned>(taken);
      else if (taken == 0 || errno != EINTR)
        return false;
    }
    return true;
  }

  bool next(EndedIo& ended) override {
    const unsigned head = *cq_head_;
    if (head == loadAcquire(*cq_tail_)) return threads_->next(ended);
    const io_uring_cqe& cqe = cqes_[head & cq_mask_];
    ended = {static_cast<std::uint32_t>(cqe.user_data), cqe.res};
    storeRelease(*cq_head_, head + 1);
    return true;
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

  const std::unique_ptr<Engine> threads_;
  std::vector<int> places_;
  std::vector<std::int32_t> free_buffers_;
  bool fixed_files_ = false;
  // The descriptor closes before the mappings end. The kernel then ends its work in the background.
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

Result<std::unique_ptr<Engine>> openUring(std::uint32_t depth, std::uint32_t files) {
  VIADUCT_TRY(auto threads, openThreads(depth));
  auto uring = std::make_unique<Uring>(std::move(threads));
  if (const int error = uring->open(depth, files); error != 0) return refused(std::strerror(error));
  return std::unique_ptr<Engine>(std::move(uring));
}

#else

Result<std::unique_ptr<Engine>> openUring(std::uint32_t, std::uint32_t) {
  return refused("this build has no <linux/io_uring.h>");
}

#endif

}  // namespace viaduct::file
