// The backend for files and block devices. Threads: as core::Backend.
#pragma once

#include <memory>
#include <vector>

#include "backends/file/file_mover.h"
#include "base/poller.h"
#include "core/backend.h"

namespace viaduct::file {

class FileBackend final : public core::Backend {
 public:
  FileBackend(const core::BackendContext& context, std::shared_ptr<FileMover> mover);
  ~FileBackend() override;
  FileBackend(const FileBackend&) = delete;
  FileBackend& operator=(const FileBackend&) = delete;

  const core::Capabilities& can() const override;
  std::shared_ptr<core::Storage> storage() override { return storage_; }
  std::span<const std::unique_ptr<core::Rail>> rails() override { return rails_; }
  core::Bytes address() const override { return {}; }
  std::unique_ptr<core::Link> link(core::LinkSeed seed, core::LinkHost& host) override;
  Result<core::Bytes> pinFor(const core::Audience& audience, std::uint32_t slot,
                             const Segment& memory) override;
  Status unpin(std::uint32_t slot) override { return mover_->unpin(slot); }

 private:
  Status start();

  base::Poller& poller_;
  const std::shared_ptr<FileMover> mover_;
  const std::shared_ptr<core::Storage> storage_;
  std::vector<std::unique_ptr<core::Rail>> rails_;
  std::vector<base::Poller::Id> watches_;
};

}  // namespace viaduct::file
