// The floor of file_bench: a bare loop over io_uring that submits a batch of random blocks, spins
// until all have ended, and begins again. It opens the file with O_DIRECT, and registers the file
// and the memory. Prints one line of JSON, as file_bench does.
//   file_bare FILE read|write BLOCK BATCH SECONDS [MEMORY [FLAGS]]
// MEMORY is a file that is mapped, or "-". FLAGS are those of io_uring_setup. With
// IORING_SETUP_DEFER_TASKRUN (12288, with SINGLE_ISSUER) the loop spins in io_uring_enter, and
// without it on the completion queue.
#include <fcntl.h>
#include <linux/io_uring.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <atomic>
#include <bit>
#include <random>

#include "base/fd.h"
#include "io_rate.h"

namespace {

using namespace viaduct::bench;
using viaduct::base::Fd;

std::byte* mapped(std::size_t bytes, int flags, int fd, off_t offset = 0) {
  void* const at = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, flags | MAP_POPULATE, fd, offset);
  if (at == MAP_FAILED) dieOf("mmap");
  return static_cast<std::byte*>(at);
}

class Ring {
 public:
  Ring(unsigned entries, unsigned flags) {
    io_uring_params params{};
    params.flags = flags;
    ring_.reset(
        static_cast<int>(must(::syscall(__NR_io_uring_setup, entries, &params), "io_uring_setup")));
    defers_ = (flags & (1U << 13U)) != 0;
    const auto map = [&](std::size_t bytes, off_t offset) {
      return mapped(bytes, MAP_SHARED, ring_.get(), offset);
    };
    std::byte* const queues = map(std::max(params.sq_off.array + params.sq_entries * 4,
                                           params.cq_off.cqes + params.cq_entries * 16),
                                  IORING_OFF_SQ_RING);
    sqes_ = reinterpret_cast<io_uring_sqe*>(map(params.sq_entries * 64, IORING_OFF_SQES));
    const auto word = [&](unsigned at) { return reinterpret_cast<unsigned*>(queues + at); };
    sq_tail_ = word(params.sq_off.tail);
    sq_mask_ = *word(params.sq_off.ring_mask);
    cq_head_ = word(params.cq_off.head);
    cq_tail_ = word(params.cq_off.tail);
    cq_mask_ = *word(params.cq_off.ring_mask);
    cqes_ = reinterpret_cast<io_uring_cqe*>(queues + params.cq_off.cqes);
    for (unsigned i = 0; i < params.sq_entries; ++i) word(params.sq_off.array)[i] = i;
  }
  void enroll(unsigned what, const void* argument, unsigned count) {
    must(::syscall(__NR_io_uring_register, ring_.get(), what, argument, count),
         "io_uring_register");
  }
  io_uring_sqe& next() {
    io_uring_sqe& sqe = sqes_[tail_++ & sq_mask_];
    sqe = {};
    return sqe;
  }
  // Submits all prepared requests, and spins until as many requests have ended.
  void finish(std::uint32_t block) {
    unsigned left = tail_ - submitted_;
    std::atomic_ref(*sq_tail_).store(tail_, std::memory_order_release);
    while (submitted_ != tail_) submitted_ += enter(tail_ - submitted_);
    while (left != 0) {
      unsigned head = *cq_head_;
      const unsigned tail = std::atomic_ref(*cq_tail_).load(std::memory_order_acquire);
      if (head == tail && defers_) enter(0);
      for (; head != tail; ++head, --left)
        if (cqes_[head & cq_mask_].res != static_cast<int>(block)) die("a short read or write");
      std::atomic_ref(*cq_head_).store(head, std::memory_order_release);
    }
  }

 private:
  unsigned enter(unsigned count) {
    return static_cast<unsigned>(must(::syscall(__NR_io_uring_enter, ring_.get(), count, 0,
                                                defers_ ? IORING_ENTER_GETEVENTS : 0, nullptr, 0),
                                      "io_uring_enter"));
  }

  Fd ring_;
  bool defers_ = false;
  io_uring_sqe* sqes_ = nullptr;
  io_uring_cqe* cqes_ = nullptr;
  unsigned *sq_tail_ = nullptr, *cq_head_ = nullptr, *cq_tail_ = nullptr;
  unsigned sq_mask_ = 0, cq_mask_ = 0, tail_ = 0, submitted_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  const Arguments given(argc, argv,
                        "file_bare FILE read|write BLOCK BATCH SECONDS [MEMORY [FLAGS]]");
  const bool write = given.text(1) == "write";
  const auto block = given.number<std::uint32_t>(2, 0), batch = given.number<std::uint32_t>(3, 0);
  const Fd file(must(::open(given.text(0).c_str(), O_RDWR | O_DIRECT | O_CLOEXEC), "open"));
  const off_t bytes = ::lseek(file.get(), 0, SEEK_END);  // works for a block device too
  const std::uint64_t count = static_cast<std::uint64_t>(bytes) / block;
  if (count == 0) die("a file without a block");
  const std::string shared = given.text(5, "-");
  const Fd other(shared == "-" ? -1 : must(::open(shared.c_str(), O_RDWR | O_CLOEXEC), "open"));
  const std::size_t room = std::size_t{block} * batch;
  const iovec memory{mapped(room, other ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS, other.get()),
                     room};
  Ring ring(std::bit_ceil(batch), given.number(6, 0U));
  const int descriptor = file.get();
  ring.enroll(IORING_REGISTER_FILES, &descriptor, 1);
  ring.enroll(IORING_REGISTER_BUFFERS, &memory, 1);
  std::mt19937_64 dice(1);
  const auto cycle = [&] {
    for (std::uint32_t i = 0; i < batch; ++i) {
      io_uring_sqe& sqe = ring.next();
      sqe.opcode = write ? IORING_OP_WRITE_FIXED : IORING_OP_READ_FIXED;
      sqe.flags = IOSQE_FIXED_FILE;
      sqe.addr = reinterpret_cast<std::uintptr_t>(memory.iov_base) + std::uint64_t{i} * block;
      sqe.len = block;
      sqe.off = dice() % count * block;
    }
    ring.finish(block);
  };
  fmt::print("{{{}}}\n", ioRate({block, batch, given.number(4, 0.0)}, cycle));
}
