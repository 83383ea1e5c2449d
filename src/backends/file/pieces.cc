#include "backends/file/pieces.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <utility>

#include "base/log.h"

namespace viaduct::file {
namespace {

std::byte* pointer(std::uint64_t address) {
  // NOLINTNEXTLINE(performance-no-int-to-ptr): only here a registered address becomes a pointer
  return reinterpret_cast<std::byte*>(static_cast<std::uintptr_t>(address));
}

Error cancelledError() {
  return {.code = Code::kCancelled, .operation = "transfer", .device = "file"};
}

}  // namespace

Pieces::Pieces(std::unique_ptr<Engine> engine, const Limits& limits)
    : engine_(std::move(engine)),
      limits_(limits),
      cache_(limits.open_files, *engine_),
      flights_(limits.depth) {
  for (std::uint32_t i = limits.depth; i > 0; --i) free_.push_back(i - 1);
  waiting_.reserve(limits.depth);
  finished_.reserve(limits.depth);
}

void Pieces::add(const FilePiece& piece) {
  const std::uint32_t token = free_.back();
  free_.pop_back();
  ActivePiece& flight = flights_[token];
  flight = {.piece = piece, .step = PieceStep::kWaits};
  const Alignment& rules = piece.file->file->alignment;
  flight.low = rules.down(piece.offset);
  flight.high = rules.up(piece.offset + piece.bytes);
  if (!begin(token)) waiting_.push_back(token);
}

// Begins a piece. False: the piece has to wait until another piece has finished.
bool Pieces::begin(std::uint32_t token) {
  ActivePiece& flight = flights_[token];
  const FilePiece& piece = flight.piece;
  if (conflicts(flight)) return false;
  if (piece.bounces) {
    if (const Status opened = bounce_.open(); !opened) return failed(token, opened.error()), true;
    if (bounce_.empty()) return false;
  }
  const auto place = cache_.use(*piece.file->file, piece.file->hint);
  if (!place) return false;
  flight.place = piece.file->hint = *place;
  const int fd = cache_[*place].fd.get();
  if (fd < 0) return open(token), true;
  if (Status fit = check(piece, fd); !fit) {
    cache_.release(*place);
    return failed(token, std::move(fit).error()), true;
  }
  if (piece.bounces) flight.buffer = bounce_.take();
  if (flight.patches()) ++patches_;
  flight.step = PieceStep::kMove;  // begun: it has taken all that leave() gives back
  firstStep(token);
  return true;
}

// Opens the file on a thread, because a file server may not answer.
void Pieces::open(std::uint32_t token) {
  ActivePiece& flight = flights_[token];
  flight.step = PieceStep::kOpen;
  flight.opening = std::make_shared<Opening>();
  engine_->call(token, [opening = flight.opening, file = flight.piece.file->file] {
    auto fd = file->reopen();
    if (fd)
      opening->fd = *std::move(fd);
    else
      opening->why = std::make_unique<Error>(std::move(fd).error());
    return 0;
  });
}

void Pieces::opened(std::uint32_t token, int result) {
  ActivePiece& flight = flights_[token];
  const auto opening = std::exchange(flight.opening, nullptr);
  const bool has_opened = static_cast<bool>(opening->fd);
  cache_.opened(flight.place, std::move(opening->fd));
  flight.step = PieceStep::kWaits;
  if (flight.cancelled) return failed(token, cancelledError());
  if (opening->why) return failed(token, std::move(*opening->why));
  if (!has_opened && ++flight.retries >= kMostRetries)
    return failed(token, systemError(Code::kExhausted, "start the thread for files", -result));
  if (!begin(token)) waiting_.push_back(token);
}

// Checks the file once for each job, because it may have changed since the last job.
Status Pieces::check(const FilePiece& piece, int fd) {
  FileTarget& target = *piece.file;
  if (target.checked_by >= piece.job->number) return Ok{};
  VIADUCT_CHECK(checkFile(*target.file, fd, target.first + target.bytes));
  target.checked_by = piece.job->number;
  rlimit limit{};
  if (piece.write) file_limit_ = ::getrlimit(RLIMIT_FSIZE, &limit) == 0 ? limit.rlim_cur : 0;
  return Ok{};
}

// A piece patches a block by reading, changing and writing it. Meanwhile no other write to the
// block may run, because the patch would undo it.
bool Pieces::conflicts(const ActivePiece& flight) const {
  if (!flight.piece.write || (patches_ == 0 && !flight.patches())) return false;
  const FileId& id = flight.piece.file->file->id;
  return std::any_of(flights_.begin(), flights_.end(), [&](const ActivePiece& other) {
    return other.begun() && other.piece.write && (other.patches() || flight.patches()) &&
           other.low < flight.high && flight.low < other.high &&
           other.piece.file->file->id.isSameFile(id);
  });
}

void Pieces::firstStep(std::uint32_t token) {
  ActivePiece& flight = flights_[token];
  const FilePiece& piece = flight.piece;
  if (!piece.bounces)
    return submit(token, PieceStep::kMove, piece.write, pointer(piece.address), piece.offset,
                  piece.bytes, piece.bytes);
  if (!piece.write)
    return submit(token, PieceStep::kRead, false, bounce_.at(flight.buffer), flight.low,
                  flight.high - flight.low, piece.offset + piece.bytes - flight.low);
  if (!flight.patches()) return patchedBlocksRead(token);
  // The first block is read even if only the last one is patched and both are the same.
  const std::uint64_t block = rules(flight).offset;
  if (piece.offset != flight.low || flight.high - flight.low == block)
    return readBlock(token, PieceStep::kReadHead, flight.low,
                     std::min(piece.offset + piece.bytes, flight.low + block) - flight.low);
  readBlock(token, PieceStep::kReadTail, flight.high - block,
            piece.offset + piece.bytes - (flight.high - block));
}

void Pieces::readBlock(std::uint32_t token, PieceStep step, std::uint64_t at,
                       std::uint64_t needed) {
  const ActivePiece& flight = flights_[token];
  std::byte* const memory = bounce_.at(flight.buffer) + (at - flight.low);
  std::memset(memory, 0, rules(flight).offset);  // a file may end inside its last block
  submit(token, step, false, memory, at, rules(flight).offset, needed);
}

void Pieces::submit(std::uint32_t token, PieceStep step, bool write, std::byte* memory,
                    std::uint64_t offset, std::uint64_t asked, std::uint64_t needed) {
  ActivePiece& flight = flights_[token];
  const FileCache::CachedFile& entry = cache_[flight.place];
  flight.step = step;
  flight.asked = asked;
  flight.needed = needed;
  flight.moved = 0;
  flight.retries = 0;
  // The engine's threads do long copies, and writes beyond the file-size limit, because they block
  // the signal of that limit (SIGXFSZ).
  const bool blocks = (!rules(flight).direct && asked > kMostCopiedAtOnce) ||
                      (write && offset + asked > file_limit_);
  flight.io = {.write = write,
               .blocks = blocks,
               .fd = entry.fd.get(),
               .fixed_file = entry.fixed ? static_cast<std::int32_t>(flight.place) : -1,
               .memory = memory,
               .offset = offset,
               .bytes = static_cast<std::uint32_t>(asked)};
  if (step == PieceStep::kMove && !blocks) flight.io.fixed_buffer = registeredBuffer(flight.piece);
  start(token);
}

void Pieces::start(std::uint32_t token) {
  ActivePiece& flight = flights_[token];
  if (flight.cancelled) return failed(token, cancelledError());
  engine_->start(token, flight.io);
}

// The registered buffer that contains the piece's memory, or -1.
std::int32_t Pieces::registeredBuffer(const FilePiece& piece) {
  FileTarget& host = *piece.host;
  const std::uint64_t at = piece.address - host.address;
  const std::uint64_t number = at / kPartBytes;
  if (limits_.registered == 0 || (at + piece.bytes - 1) / kPartBytes != number) return -1;
  if (host.parts.empty()) host.parts.resize((host.bytes + kPartBytes - 1) / kPartBytes);
  FileTarget::TargetPart& part = host.parts[number];
  if (part.tried) return part.buffer;
  part.pages += std::max<std::uint32_t>(1, piece.bytes / 4096);
  if (part.pages < kPagesBefore || registered_now_ >= kMostRegisteredAtOnce) return -1;
  part.tried = true;
  const std::uint64_t begin = number * kPartBytes;
  const std::uint64_t bytes = std::min(kPartBytes, host.bytes - begin);
  if (registered_ + bytes > limits_.registered) return -1;
  part.buffer = engine_->registerBuffer({pointer(host.address + begin), bytes});
  registered_now_ += bytes;
  if (part.buffer >= 0) registered_ += bytes;
  return part.buffer;
}

void Pieces::reap(std::vector<FinishedPiece>& out) {
  bool any = false;
  copied_ = 0;
  for (Engine::EndedIo end; copied_ < kMostCopied && engine_->next(end); any = true) ended(end);
  if (any) std::erase_if(waiting_, [this](std::uint32_t token) { return begin(token); });
  std::move(finished_.begin(), finished_.end(), std::back_inserter(out));
  finished_.clear();
}

bool Pieces::submit() {
  registered_now_ = 0;
  return engine_->submit() && finished_.empty();
}

void Pieces::ended(const Engine::EndedIo& end) {
  ActivePiece& flight = flights_[end.token];
  if (flight.step == PieceStep::kOpen) return opened(end.token, end.result);
  if (flight.step == PieceStep::kRestore) {
    if (end.result < 0 && ++flight.retries < kMostRetries) return restoreSize(end.token);
    return finish(end.token, std::move(flight.why));
  }
  // After a cancel, memory is not touched even if the kernel has finished.
  if (flight.cancelled) return failed(end.token, cancelledError());
  if (end.result < 0) return retryOrFail(end.token, -end.result);
  flight.moved += static_cast<std::uint64_t>(end.result);
  if (flight.moved >= flight.needed) return stepEnded(end.token);
  const std::uint64_t at = flight.io.offset + static_cast<std::uint64_t>(end.result);
  // A read that ends inside a block has met the end of the file.
  const bool end_of_file =
      !flight.io.write &&
      (end.result == 0 || (rules(flight).direct && rules(flight).down(at) != at));
  if (end_of_file) return failed(end.token, shrunkError(*flight.piece.file->file, at, at));
  if (end.result == 0 && ++flight.retries >= kMostRetries)
    return failed(end.token, ioError(*flight.piece.file->file, flight.io.write, flight.io.offset,
                                     flight.io.bytes, EIO));
  resubmit(end.token);
}

// Repeats a failed read or write: on a thread if it would block, else after EINTR or EAGAIN.
void Pieces::retryOrFail(std::uint32_t token, int os_errno) {
  ActivePiece& flight = flights_[token];
  const bool would_block = os_errno == EAGAIN || os_errno == EOPNOTSUPP;
  if (would_block && !flight.io.blocks) {
    flight.io.blocks = true;
    return engine_->start(token, flight.io);
  }
  if ((os_errno == EINTR || os_errno == EAGAIN) && ++flight.retries < kMostRetries)
    return engine_->start(token, flight.io);
  failed(token, ioError(*flight.piece.file->file, flight.io.write, flight.io.offset,
                        flight.io.bytes, os_errno));
}

// Asks for the rest of a short read or write, from the last block boundary.
void Pieces::resubmit(std::uint32_t token) {
  ActivePiece& flight = flights_[token];
  const std::uint64_t begun = flight.io.offset + flight.io.bytes - flight.asked;
  const std::uint64_t at = rules(flight).down(begun + flight.moved);
  if (at > flight.io.offset)
    flight.retries = 0;
  else if (++flight.retries >= kMostRetries)
    return failed(token, ioError(*flight.piece.file->file, flight.io.write, flight.io.offset,
                                 flight.io.bytes, EIO));
  flight.moved = at - begun;
  flight.io.memory += at - flight.io.offset;
  flight.io.bytes -= static_cast<std::uint32_t>(at - flight.io.offset);
  flight.io.offset = at;
  start(token);
}

void Pieces::stepEnded(std::uint32_t token) {
  ActivePiece& flight = flights_[token];
  const FilePiece& piece = flight.piece;
  const std::uint64_t block = rules(flight).offset;
  switch (flight.step) {
    case PieceStep::kRead:
      copied_ += piece.bytes;
      if (!bounce_.copyOut(flight.buffer, piece.offset - flight.low, pointer(piece.address),
                           piece.bytes))
        return failed(token, ioError(*piece.file->file, false, piece.offset, piece.bytes, EFAULT));
      return finish(token, nullptr);
    case PieceStep::kReadHead:
      if (flight.moved < block) flight.size = flight.low + flight.moved;
      if (flight.high - flight.low > block && piece.offset + piece.bytes != flight.high)
        return readBlock(token, PieceStep::kReadTail, flight.high - block,
                         piece.offset + piece.bytes - (flight.high - block));
      return patchedBlocksRead(token);
    case PieceStep::kReadTail:
      if (flight.moved < block) flight.size = flight.high - block + flight.moved;
      return patchedBlocksRead(token);
    default:
      return finish(token, nullptr);
  }
}

// The buffer now has the file's present bytes around the piece. Copies the piece into the buffer,
// and writes the blocks.
void Pieces::patchedBlocksRead(std::uint32_t token) {
  const ActivePiece& flight = flights_[token];
  const FilePiece& piece = flight.piece;
  copied_ += piece.bytes;
  if (!bounce_.copyIn(flight.buffer, piece.offset - flight.low, pointer(piece.address),
                      piece.bytes))
    return failed(token, ioError(*piece.file->file, true, piece.offset, piece.bytes, EFAULT));
  const std::uint64_t bytes = flight.high - flight.low;
  submit(token, PieceStep::kWrite, true, bounce_.at(flight.buffer), flight.low, bytes, bytes);
}

void Pieces::failed(std::uint32_t token, Error why) {
  finish(token, std::make_unique<Error>(std::move(why)));
}

// Writing the whole last block has extended a file that ended inside the block. Restores its size.
void Pieces::restoreSize(std::uint32_t token) {
  ActivePiece& flight = flights_[token];
  flight.step = PieceStep::kRestore;
  engine_->call(token, [fd = cache_[flight.place].fd.get(), file = flight.piece.file->file,
                        low = flight.size, high = flight.high] {
    struct stat facts{};
    if (::fstat(fd, &facts) != 0) return 0;
    const auto size = static_cast<std::uint64_t>(facts.st_size);
    if (size > low && size <= high && ::ftruncate(fd, static_cast<off_t>(low)) != 0)
      base::log(base::LogLevel::kError, "{}: cannot restore its size of {} bytes: {}", file->path,
                low, std::strerror(errno));
    return 0;
  });
}

void Pieces::finish(std::uint32_t token, std::unique_ptr<Error> why) {
  ActivePiece& flight = flights_[token];
  if (flight.step == PieceStep::kWrite && flight.size != 0) {
    flight.why = std::move(why);
    return restoreSize(token);
  }
  if (flight.begun()) leave(flight);
  flight.step = PieceStep::kFree;
  finished_.push_back({flight.piece, std::move(why)});
  free_.push_back(token);
}

void Pieces::leave(ActivePiece& flight) {
  if (flight.patches()) --patches_;
  if (flight.piece.bounces) bounce_.give(flight.buffer);
  cache_.release(flight.place);
}

void Pieces::cancel(std::uint32_t token) {
  ActivePiece& flight = flights_[token];
  if (flight.step == PieceStep::kFree || std::exchange(flight.cancelled, true)) return;
  if (flight.step == PieceStep::kRestore) return;
  if (flight.step != PieceStep::kWaits) return engine_->cancel(token);
  std::erase(waiting_, token);
  failed(token, cancelledError());
}

void Pieces::cancelJob(const move::Job& job) {
  for (std::uint32_t token = 0; token < flights_.size(); ++token)
    if (flights_[token].piece.job == &job) cancel(token);
}

void Pieces::forget(FileTarget& target) {
  for (std::size_t i = 0; i < target.parts.size(); ++i) {
    const FileTarget::TargetPart& part = target.parts[i];
    if (part.buffer < 0) continue;
    engine_->unregisterBuffer(part.buffer);
    registered_ -= std::min(kPartBytes, target.bytes - i * kPartBytes);
  }
  if (target.file) cache_.forget(target.file->id);
}

}  // namespace viaduct::file
