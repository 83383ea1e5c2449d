// The floor of file_bench: a bare loop over io_uring that submits a batch of random blocks, spins
// until all have ended, and begins again. It opens the file with O_DIRECT, and registers the file
// and the memory. Prints one line of JSON, as file_bench does.
//   file_bare FILE read|write BLOCK BATCH SECONDS [MEMORY [FLAGS]]
// MEMORY is a file that is mapped, or "-". FLAGS are those of io_uring_setup. With
// IORING_SETUP_DEFER_TASKRUN (12288, with SINGLE_ISSUER) the loop spins in io_uring_enter, and
// without it on the completion queue.
#include <fcntl.h>
#include <fmt/format.h>
#include <linux/io_uring.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <atomic>
#include <bit>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <random>
#include <string>

#include "base/fd.h"

namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;
using viaduct::base::Fd;

struct Options {
  std::string file;
  bool write = false;
  std::uint32_t block = 0, batch = 0;
  double seconds = 0;
  std::string memory = "-";
  unsigned flags = 0;
};

void need(bool fine, const char* what) {
  if (fine) return;
  fmt::print(stderr, "{}: errno {}\n", what, errno);
  std::exit(1);
}

double processorSeconds() {
  rusage used{};
  ::getrusage(RUSAGE_SELF, &used);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  return seconds(used.ru_utime) + seconds(used.ru_stime);
}

class Ring {
 public:
  Ring(unsigned entries, unsigned flags) {
    io_uring_params params{};
    params.flags = flags;
    ring_.reset(static_cast<int>(::syscall(__NR_io_uring_setup, entries, &params)));
    need(bool(ring_), "io_uring_setup");
    defers_ = (flags & (1U << 13U)) != 0;
    const auto map = [&](std::size_t bytes, off_t offset) {
      void* const at = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE,
                              ring_.get(), offset);
      need(at != MAP_FAILED, "mmap of the ring");
      return static_cast<std::byte*>(at);
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
    need(::syscall(__NR_io_uring_register, ring_.get(), what, argument, count) == 0, "register");
  }
  io_uring_sqe& next() {
    io_uring_sqe& sqe = sqes_[tail_++ & sq_mask_];
    sqe = {};
    return sqe;
  }
  // Submits all, and spins until as many have ended.
  void finish(std::uint32_t block) {
    unsigned left = tail_ - submitted_;
    std::atomic_ref(*sq_tail_).store(tail_, std::memory_order_release);
    while (submitted_ != tail_) submitted_ += enter(tail_ - submitted_);
    while (left != 0) {
      unsigned head = *cq_head_;
      const unsigned tail = std::atomic_ref(*cq_tail_).load(std::memory_order_acquire);
      if (head == tail && defers_) enter(0);
      for (; head != tail; ++head, --left)
        need(cqes_[head & cq_mask_].res == static_cast<int>(block), "a short read or write");
      std::atomic_ref(*cq_head_).store(head, std::memory_order_release);
    }
  }

 private:
  unsigned enter(unsigned count) {
    const long taken = ::syscall(__NR_io_uring_enter, ring_.get(), count, 0,
                                 defers_ ? IORING_ENTER_GETEVENTS : 0, nullptr, 0);
    need(taken >= 0, "io_uring_enter");
    return static_cast<unsigned>(taken);
  }

  Fd ring_;
  bool defers_ = false;
  io_uring_sqe* sqes_ = nullptr;
  io_uring_cqe* cqes_ = nullptr;
  unsigned *sq_tail_ = nullptr, *cq_head_ = nullptr, *cq_tail_ = nullptr;
  unsigned sq_mask_ = 0, cq_mask_ = 0, tail_ = 0, submitted_ = 0;
};

std::byte* mapped(const Options& o, std::size_t bytes) {
  const Fd fd(o.memory == "-" ? -1 : ::open(o.memory.c_str(), O_RDWR | O_CLOEXEC));
  void* const at =
      ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
             (fd ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS) | MAP_POPULATE, fd ? fd.get() : -1, 0);
  need(at != MAP_FAILED, "mmap of the memory");
  return static_cast<std::byte*>(at);
}

void run(const Options& o) {
  const Fd file(::open(o.file.c_str(), O_RDWR | O_DIRECT | O_CLOEXEC));
  need(bool(file), "open");
  const off_t bytes = ::lseek(file.get(), 0, SEEK_END);  // of a block device too
  const std::uint64_t count = static_cast<std::uint64_t>(bytes) / o.block;
  need(count != 0, "a file without a block");
  iovec memory{mapped(o, std::size_t{o.block} * o.batch), std::size_t{o.block} * o.batch};
  Ring ring(std::bit_ceil(o.batch), o.flags);
  const int descriptor = file.get();
  ring.enroll(IORING_REGISTER_FILES, &descriptor, 1);
  ring.enroll(IORING_REGISTER_BUFFERS, &memory, 1);
  std::mt19937_64 dice(1);
  const auto cycle = [&] {
    for (std::uint32_t i = 0; i < o.batch; ++i) {
      io_uring_sqe& sqe = ring.next();
      sqe.opcode = o.write ? IORING_OP_WRITE_FIXED : IORING_OP_READ_FIXED;
      sqe.flags = IOSQE_FIXED_FILE;
      sqe.addr = reinterpret_cast<std::uintptr_t>(memory.iov_base) + std::uint64_t{i} * o.block;
      sqe.len = o.block;
      sqe.off = dice() % count * o.block;
    }
    ring.finish(o.block);
  };
  const auto warm = Clock::now() + 1s;
  while (Clock::now() < warm) cycle();
  std::uint64_t cycles = 0;
  const double cpu = processorSeconds();
  const auto begun = Clock::now();
  std::chrono::duration<double> passed{};
  do {
    cycle();
    ++cycles;
    passed = Clock::now() - begun;
  } while (passed.count() < o.seconds);
  const auto ios = static_cast<double>(cycles * o.batch);
  fmt::print("{{\"iops\": {:.0f}, \"bytes_per_second\": {:.0f}, \"cpu_us_per_io\": {:.3f}}}\n",
             ios / passed.count(), ios * o.block / passed.count(),
             (processorSeconds() - cpu) / ios * 1e6);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 6) {
    fmt::print(stderr, "usage: file_bare FILE read|write BLOCK BATCH SECONDS [MEMORY [FLAGS]]\n");
    return 2;
  }
  const std::vector<std::string> words(argv, argv + argc);
  run({.file = words[1],
       .write = words[2] == "write",
       .block = static_cast<std::uint32_t>(std::stoul(words[3])),
       .batch = static_cast<std::uint32_t>(std::stoul(words[4])),
       .seconds = std::stod(words[5]),
       .memory = argc > 6 ? words[6] : "-",
       .flags = argc > 7 ? static_cast<unsigned>(std::stoul(words[7])) : 0});
}
