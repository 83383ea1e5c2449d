// The requests that move bytes from or to one object, in their order; no I/O. A read is a list of
// ranges. A write is one PUT, or an upload in parts. An upload that several works share is a task
// for each of its steps. Threads: the mover's.
#pragma once

#include <viaduct/result.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "s3/answer.h"
#include "s3/exchange.h"
#include "s3/object_name.h"

namespace viaduct::object {

// The knowledge about an object that the backend keeps in Segment::opened.
struct ObjectFacts {
  s3::ObjectName name = {};
  std::uint64_t bytes = 0;
  std::string etag = {};   // of the version that reads have to see; empty: any, or not yet written
  bool temporary = false;  // deleted once its pin is gone
};

// A pinned object, or a part of one.
struct ObjectPin {
  std::shared_ptr<const ObjectFacts> facts = {};
  std::uint64_t address = 0, bytes = 0;  // of the pin
  std::uint64_t offset = 0;              // in the object, of its first byte
};

// Bytes of the object, and their place in this process.
struct ObjectPiece {
  std::uint64_t offset = 0, memory = 0, bytes = 0;
};
// Sorts the pieces by offset, and returns the range of the object that they cover. Nothing: there
// are no bytes, or the pieces leave a gap or overlap.
std::optional<s3::ByteRange> sortedRange(std::vector<ObjectPiece>& pieces);

// The limit of S3 for one upload.
inline constexpr std::uint64_t kMostParts = 10'000;
// A part of an upload.
struct UploadPart {
  std::uint32_t number = 0;
  std::string etag = {};  // empty: it is not stored yet
};

enum class TaskStep : std::uint8_t {
  kGet,
  kPut,
  kCreate,
  kPart,
  kComplete,
  kAbort,
  kDelete,
  kHead,
  kProbe
};

// One request of a task.
struct Ask {
  TaskStep step = TaskStep::kGet;
  std::uint32_t part = 0;  // its index, for kGet and kPart
};

class Task {
 public:
  // `pieces` may be in any order. kUnsupported: a write does not cover the whole object.
  static Result<std::shared_ptr<Task>> read(const ObjectPin& pin, std::vector<ObjectPiece> pieces,
                                            std::uint64_t most_part);
  static Result<std::shared_ptr<Task>> write(const ObjectPin& pin, std::vector<ObjectPiece> pieces,
                                             std::uint64_t most_part);
  static std::shared_ptr<Task> head(s3::ObjectName name);
  // Asks the same as head() by a GET of one byte, whose error has a body with S3's code.
  static std::shared_ptr<Task> probe(s3::ObjectName name);
  // Tasks for the single steps of an upload, which outlives each of these tasks. The caller aborts
  // the upload if it is not completed.
  static std::shared_ptr<Task> create(s3::ObjectName name);
  // `pieces` are contiguous bytes of the object, in order.
  static std::shared_ptr<Task> part(s3::ObjectName name, std::string upload, std::uint32_t number,
                                    std::vector<ObjectPiece> pieces);
  static std::shared_ptr<Task> complete(s3::ObjectName name, std::string upload,
                                        std::vector<UploadPart> parts);
  static std::shared_ptr<Task> abort(s3::ObjectName name, std::string upload);
  static std::shared_ptr<Task> remove(s3::ObjectName name);

  std::vector<Ask> begin() const;
  // The request, without its signature; its query is unencoded.
  s3::HttpRequest request(Ask ask) const;
  s3::Query query(Ask ask) const;
  // Appends the memory of a request to a stream.
  void describe(Ask ask, s3::MemoryStream& memory) const;
  // Takes a successful answer, and returns the next requests.
  Result<std::vector<Ask>> answered(Ask ask, const s3::Answer& answer);
  bool done() const { return done_; }

  const s3::ObjectName& name() const { return name_; }
  const ObjectFacts& found() const { return found_; }  // by head() or probe()
  // The id of the unfinished upload, which S3 keeps until it is completed or aborted.
  const std::string& upload() const { return upload_; }
  // Hands the upload over to the caller, who completes or aborts it. Empty: there is none, or it is
  // not the task's own.
  std::string takeUpload() { return borrows_upload_ ? std::string() : std::exchange(upload_, {}); }
  const std::vector<UploadPart>& uploadParts() const { return upload_parts_; }
  std::string operation(Ask ask) const;  // for texts

 private:
  struct ObjectPart {
    s3::ByteRange range;
    std::size_t piece = 0;   // the first of its pieces
    std::uint64_t skip = 0;  // bytes of this piece that belong to parts before
  };
  explicit Task(s3::ObjectName name) : name_(std::move(name)) {}
  static std::shared_ptr<Task> single(s3::ObjectName name, TaskStep step);
  void cut(std::uint64_t most_part);
  Status tookFacts(Ask ask, const s3::Answer& answer);
  Result<std::vector<Ask>> tookRange(Ask ask, const s3::Answer& answer);
  Result<std::vector<Ask>> tookUpload(Ask ask, const s3::Answer& answer);
  Error wrong(Ask ask, std::string detail, std::string cause) const;
  std::string completion() const;

  s3::ObjectName name_;
  std::vector<Ask> first_;
  std::vector<ObjectPiece> pieces_;  // by offset
  std::vector<ObjectPart> parts_;
  std::vector<UploadPart> upload_parts_;
  std::string etag_;  // of the version that is read
  std::string upload_;
  bool borrows_upload_ = false;
  ObjectFacts found_;
  std::size_t open_ = 0;  // parts without an answer
  bool done_ = false;
};

}  // namespace viaduct::object
