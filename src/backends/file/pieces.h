// The pieces in flight: each is one read or write of a file, or several through an aligned buffer.
// No function waits for a disk or a file server. Threads: one at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "backends/file/bounce.h"
#include "backends/file/engine.h"
#include "backends/file/file_cache.h"
#include "backends/file/file_target.h"
#include "move/job.h"

namespace viaduct::file {

// A part of an op, between host memory and one file.
struct FilePiece {
  move::Job* job = nullptr;
  bool write = false, bounces = false;
  FileTarget* host = nullptr;
  FileTarget* file = nullptr;
  std::uint64_t address = 0, offset = 0;
  std::uint32_t bytes = 0;
};

class Pieces {
 public:
  struct Limits {
    std::uint32_t depth = 0, open_files = 0;
    std::uint64_t registered = 0;
  };
  struct FinishedPiece {
    FilePiece piece = {};
    std::unique_ptr<Error> why = {};  // null: all of its bytes have moved
  };

  Pieces(std::unique_ptr<Engine> engine, const Limits& limits);
  Engine& engine() { return *engine_; }
  std::uint32_t room() const { return static_cast<std::uint32_t>(free_.size()); }
  bool empty() const { return free_.size() == flights_.size(); }

  void add(const FilePiece& piece);  // only if there is room
  // Ends the pieces of a job early, except those whose I/O the kernel or a thread has begun. Each
  // piece still comes back as finished.
  void cancelJob(const move::Job& job);
  // Appends the pieces that have finished. Copies a bounded number of bytes at most.
  void reap(std::vector<FinishedPiece>& out);
  // False: the kernel has no room now, or pieces have finished meanwhile, so call reap() and
  // submit() again.
  bool submit();
  // Forgets a target. Call it once the target has no pieces any more.
  void forget(FileTarget& target);

 private:
  static constexpr std::uint32_t kBounces = 16;
  // The most bytes that one reap() copies through aligned buffers, in about half a millisecond.
  static constexpr std::uint64_t kMostCopied = std::uint64_t{4} << 20U;
  // The longest piece that the submitting thread itself copies between host memory and the page
  // cache.
  static constexpr std::uint64_t kMostCopiedAtOnce = std::uint64_t{64} << 10U;
  // Host memory is registered in parts of this size, once pieces have used some pages of a part: at
  // the first large piece. The kernel allocates new pages of registered memory together, so they
  // are adjacent more often (docs/measured/files.md). A part takes 0.05 ms, and 1 ms if its pages
  // are new.
  static constexpr std::uint64_t kPartBytes = std::uint64_t{4} << 20U;
  static constexpr std::uint32_t kPagesBefore = 16;
  // The most bytes to register before each submit(). Pieces in flight would allocate as many pages.
  static constexpr std::uint64_t kMostRegisteredAtOnce = std::uint64_t{32} << 20U;
  static constexpr std::uint32_t kMostRetries = 100;  // without progress

  enum class PieceStep : std::uint8_t {
    kFree,
    kWaits,
    kOpen,  // a thread opens the file
    kMove,
    kReadHead,
    kReadTail,
    kRead,
    kWrite,
    kRestore,  // a thread restores the size of the file
  };
  // The result of opening a file.
  struct Opening {
    base::Fd fd = {};
    std::unique_ptr<Error> why = {};
  };
  struct ActivePiece {
    FilePiece piece = {};
    PieceStep step = PieceStep::kFree;
    bool cancelled = false;
    std::uint64_t low = 0, high = 0;  // the blocks of the file that contain the piece
    std::uint32_t place = 0;          // in the FileCache
    std::uint32_t buffer = 0;         // if it bounces
    std::uint64_t size = 0;           // the file's, if it ends in the last of these blocks; else 0
    // The current I/O: it is done when `needed` of the `asked` bytes have moved.
    Io io = {};
    std::uint64_t asked = 0, needed = 0, moved = 0;
    std::uint32_t retries = 0;
    std::shared_ptr<Opening> opening = {};  // in kOpen
    std::unique_ptr<Error> why = {};        // in kRestore

    bool begun() const { return step > PieceStep::kOpen; }
    // The piece changes only a part of a block, so it reads the block first.
    bool patches() const {
      return piece.write && piece.bounces &&
             (piece.offset != low || piece.offset + piece.bytes != high);
    }
  };

  bool begin(std::uint32_t token);
  bool conflicts(const ActivePiece& flight) const;
  void open(std::uint32_t token);
  void opened(std::uint32_t token, int result);
  Status check(const FilePiece& piece, int fd);
  void firstStep(std::uint32_t token);
  void readBlock(std::uint32_t token, PieceStep step, std::uint64_t at, std::uint64_t needed);
  void submit(std::uint32_t token, PieceStep step, bool write, std::byte* memory,
              std::uint64_t offset, std::uint64_t asked, std::uint64_t needed);
  void start(std::uint32_t token);
  std::int32_t registeredBuffer(const FilePiece& piece);
  void ended(const Engine::EndedIo& end);
  void retryOrFail(std::uint32_t token, int os_errno);
  void resubmit(std::uint32_t token);
  void stepEnded(std::uint32_t token);
  void patchedBlocksRead(std::uint32_t token);
  void restoreSize(std::uint32_t token);
  void failed(std::uint32_t token, Error why);
  void finish(std::uint32_t token, std::unique_ptr<Error> why);
  void leave(ActivePiece& flight);
  void cancel(std::uint32_t token);
  const Alignment& rules(const ActivePiece& flight) const {
    return flight.piece.file->file->alignment;
  }

  const std::unique_ptr<Engine> engine_;
  const Limits limits_;
  FileCache cache_;
  Bounce bounce_{kBounces};
  std::vector<ActivePiece> flights_;
  std::vector<std::uint32_t> free_, waiting_;
  std::uint32_t patches_ = 0;  // begun flights that patch
  std::uint64_t registered_ = 0;
  std::uint64_t registered_now_ = 0;  // since the last submit()
  std::uint64_t copied_ = 0;          // in this reap()
  std::uint64_t file_limit_ = 0;      // RLIMIT_FSIZE
  std::vector<FinishedPiece> finished_;
};

}  // namespace viaduct::file
