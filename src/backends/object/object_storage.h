// Opens objects, and starts the mover with the first one. Threads: any.
#pragma once

#include <viaduct/settings.h>

#include <memory>
#include <mutex>

#include "backends/object/object_mover.h"
#include "core/backend.h"

namespace viaduct::object {

class ObjectStorage final : public core::Storage {
 public:
  explicit ObjectStorage(const Settings& settings) : settings_(settings) {}
  Result<Segment> open(Segment segment) override;
  void giveUp(std::uint64_t whole) override;
  // Null before the first object. The mover lives as long as this storage.
  ObjectMover* mover();

 private:
  Result<ObjectMover*> start();
  Result<Segment> existing(ObjectMover& mover, const s3::ObjectName& name, Segment segment) const;

  const Settings settings_;
  std::mutex mutex_;  // guards mover_
  std::unique_ptr<ObjectMover> mover_;
};

}  // namespace viaduct::object
