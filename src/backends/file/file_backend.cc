#include "backends/file/file_backend.h"

#include <sys/epoll.h>

#include <utility>

#include "backends/file/facts.h"
#include "backends/file/opened_file.h"
#include "move/own_link.h"

namespace viaduct::file {
namespace {

class FileStorage final : public core::Storage {
 public:
  FileStorage(std::shared_ptr<FileMover> mover, Toggle direct)
      : mover_(std::move(mover)), direct_(direct) {}
  // Opens the engine here, because an agent without files needs none.
  Result<Segment> open(Segment segment) override {
    VIADUCT_TRY(Segment opened, openFile(std::move(segment), direct_));
    VIADUCT_CHECK(mover_->prepare());
    return opened;
  }

 private:
  const std::shared_ptr<FileMover> mover_;
  const Toggle direct_;
};

// The only rail: all files share one queue.
class FileRail final : public core::Rail {
 public:
  explicit FileRail(FileMover& mover) : mover_(mover) {}
  std::string_view name() const override { return "files"; }
  std::size_t post(const core::Work& work) override { return mover_.post(work); }
  void poll(core::Completions& out) override { mover_.poll(out); }
  void cancel(const core::Sink& sink) override { mover_.cancel(sink); }
  bool busy() const override { return mover_.busy(); }
  void collect(core::Completions& out) override { mover_.collect(out); }

 private:
  FileMover& mover_;
};

class FileLink final : public move::OwnLink {
 public:
  explicit FileLink(std::shared_ptr<FileMover> mover)
      : OwnLink("files"), mover_(std::move(mover)) {}
  std::optional<std::string_view> reaches(OpKind kind, std::uint32_t local_pin,
                                          std::uint32_t remote_pin) const override {
    const FileTarget* const local = mover_->find(local_pin);
    const FileTarget* const remote = mover_->find(remote_pin);
    if (local == nullptr || remote == nullptr ||
        (local->file == nullptr) == (remote->file == nullptr))
      return std::nullopt;
    const FileTarget& into = kind == OpKind::kWrite ? *remote : *local;
    if (!into.writable) return std::nullopt;
    const bool direct = (local->file ? local : remote)->file->alignment.direct;
    if (mover_->usesUring()) return direct ? "uring" : "uring buffered";
    return direct ? "threads" : "threads buffered";
  }
  void close(core::Completions& out) override { mover_->close(*this, out); }
  std::function<bool()> settling() const override { return mover_->settling(); }

 private:
  const std::shared_ptr<FileMover> mover_;
};

}  // namespace

FileBackend::FileBackend(const core::BackendContext& context, std::shared_ptr<FileMover> mover)
    : poller_(context.poller),
      mover_(std::move(mover)),
      storage_(std::make_shared<FileStorage>(mover_, kDirect.of(context.settings))) {
  rails_.push_back(std::make_unique<FileRail>(*mover_));
}

// Wakes a sleeping agent, which then polls the rail. A wake counts as progress only if the poll
// ends a transfer: a wait for a long transfer then does not spin between its reads and writes.
Status FileBackend::start() {
  if (!watches_.empty()) return Ok{};
  for (const int fd : mover_->start()) {
    VIADUCT_TRY(const auto watch, poller_.watch(fd, EPOLLIN, {}));
    watches_.push_back(watch);
  }
  return Ok{};
}

// NOLINTNEXTLINE(bugprone-exception-escape): the mover has an owner for shared_from_this()
FileBackend::~FileBackend() {
  for (const auto watch : watches_) poller_.forget(watch);
  mover_->stop();
}

const core::Capabilities& FileBackend::can() const {
  static const core::Capabilities facts{
      .name = "file",
      .memory = {MemoryKind::kHost, MemoryKind::kFile, MemoryKind::kBlock},
      .same_host = true,
      .own_memory = true,
      .preference = 60};
  return facts;
}

std::unique_ptr<core::Link> FileBackend::link(core::LinkSeed /*seed*/, core::LinkHost&) {
  return std::make_unique<FileLink>(mover_);
}

// The links of this backend lead only to this agent, so the audience does not matter.
Result<core::Bytes> FileBackend::pinFor(const core::Audience& /*audience*/, std::uint32_t slot,
                                        const Segment& memory) {
  FileTarget target{.address = memory.address,
                    .bytes = memory.bytes,
                    .first = memory.fd_offset,
                    .writable = memory.access == MemoryAccess::kReadWrite};
  if (isStorage(memory.kind)) {
    if (!memory.opened)
      return Error{.code = Code::kInvalid,
                   .operation = "pin",
                   .detail = "the file was not opened by Storage::open()",
                   .device = "file"};
    VIADUCT_CHECK(start());
    target.file = std::static_pointer_cast<const OpenedFile>(memory.opened);
  }
  mover_->pin(slot, std::move(target));
  return core::Bytes{};
}

Result<std::unique_ptr<core::Backend>> open(const core::BackendContext& context) {
  return std::unique_ptr<core::Backend>(
      std::make_unique<FileBackend>(context, std::make_shared<FileMover>(context.settings)));
}

}  // namespace viaduct::file
