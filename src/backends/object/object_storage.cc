#include "backends/object/object_storage.h"

#include <fmt/format.h>

#include <utility>

namespace viaduct::object {
namespace {

Error badPin(const s3::ObjectName& name, std::string detail, std::string remedy) {
  return {.code = Code::kInvalid,
          .operation = "pin " + name.text(),
          .detail = std::move(detail),
          .device = "object",
          .remedy = std::move(remedy)};
}

Result<Segment> fresh(s3::ObjectName name, Segment segment) {
  if (segment.bytes == 0)
    return badPin(name, "a new object needs a size", "set FileOptions::bytes");
  if (segment.fd_offset != 0)
    return badPin(name, "a new object begins at offset 0", "leave FileOptions::offset at 0");
  segment.opened = std::make_shared<const ObjectFacts>(
      ObjectFacts{.name = std::move(name), .bytes = segment.bytes, .temporary = segment.temporary});
  segment.access = MemoryAccess::kReadWrite;
  return segment;
}

}  // namespace

ObjectMover* ObjectStorage::mover() {
  const std::lock_guard lock(mutex_);
  return mover_.get();
}

Result<ObjectMover*> ObjectStorage::start() {
  const std::lock_guard lock(mutex_);
  if (!mover_) {
    VIADUCT_TRY(const ObjectOptions options, resolveOptions(settings_));
    VIADUCT_TRY(mover_, ObjectMover::open(options, settings_.grace));
  }
  return mover_.get();
}

Result<Segment> ObjectStorage::open(Segment segment) {
  VIADUCT_TRY(s3::ObjectName name, s3::parseObjectName(segment.path));
  VIADUCT_TRY(ObjectMover* const mover, start());
  segment.kind = MemoryKind::kObject;
  if (segment.temporary && !segment.create)
    return badPin(name, "only a new object can be temporary", "set FileOptions::create");
  if (segment.create) return fresh(std::move(name), std::move(segment));
  return existing(*mover, name, std::move(segment));
}

void ObjectStorage::giveUp(std::uint64_t whole) {
  if (ObjectMover* const started = mover()) started->giveUp(whole);
}

Result<Segment> ObjectStorage::existing(ObjectMover& mover, const s3::ObjectName& name,
                                        Segment segment) const {
  VIADUCT_TRY(ObjectFacts facts, mover.look(name, settings_.deadline));
  const std::uint64_t size = facts.bytes, offset = segment.fd_offset;
  if (size == 0)
    return badPin(name, "the object is empty",
                  "write it first, or pin it with FileOptions::create");
  if (offset >= size || segment.bytes > size - offset)
    return badPin(name,
                  fmt::format("{} bytes from offset {} of an object of {} bytes", segment.bytes,
                              offset, size),
                  "pin bytes that the object has");
  if (segment.bytes == 0) segment.bytes = size - offset;
  segment.opened = std::make_shared<const ObjectFacts>(std::move(facts));
  segment.access = MemoryAccess::kReadOnly;
  return segment;
}

}  // namespace viaduct::object
