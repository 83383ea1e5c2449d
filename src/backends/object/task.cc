#include "backends/object/task.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "base/printable.h"
#include "base/sizes.h"
#include "base/text.h"

namespace viaduct::object {
namespace {

constexpr std::size_t kMostUpload = 300;  // shown bytes of an upload's id

// The size of an upload's parts: larger than usual if there would be too many parts.
std::uint64_t partOf(std::uint64_t bytes, std::uint64_t usual) {
  const std::uint64_t least = (bytes + kMostParts - 1) / kMostParts;
  return std::max(usual, (least + base::kMiB - 1) / base::kMiB * base::kMiB);
}

void sort(std::vector<ObjectPiece>& pieces) {
  std::ranges::sort(pieces, {}, [](const ObjectPiece& piece) { return piece.offset; });
}

}  // namespace

std::optional<s3::ByteRange> sortedRange(std::vector<ObjectPiece>& pieces) {
  if (pieces.empty()) return std::nullopt;
  sort(pieces);
  const std::uint64_t first = pieces.front().offset;
  std::uint64_t end = first;
  for (const ObjectPiece& piece : pieces) {
    if (piece.offset != end) return std::nullopt;
    end += piece.bytes;
  }
  if (end == first) return std::nullopt;
  return s3::ByteRange{first, end - 1};
}

Result<std::shared_ptr<Task>> Task::read(const ObjectPin& pin, std::vector<ObjectPiece> pieces,
                                         std::uint64_t most_part) {
  std::shared_ptr<Task> out(new Task(pin.facts->name));
  out->pieces_ = std::move(pieces);
  out->etag_ = pin.facts->etag;
  sort(out->pieces_);
  out->cut(most_part);
  for (std::uint32_t i = 0; i < out->parts_.size(); ++i) out->first_.push_back({TaskStep::kGet, i});
  return out;
}

Result<std::shared_ptr<Task>> Task::write(const ObjectPin& pin, std::vector<ObjectPiece> pieces,
                                          std::uint64_t most_part) {
  std::shared_ptr<Task> out(new Task(pin.facts->name));
  out->pieces_ = std::move(pieces);
  const std::uint64_t bytes = pin.facts->bytes;
  if (pin.offset != 0 || sortedRange(out->pieces_) != s3::ByteRange{0, bytes - 1})
    return Error{.code = Code::kUnsupported,
                 .operation = "PUT " + pin.facts->name.text(),
                 .detail = fmt::format("the transfer writes a part of the {} bytes", bytes),
                 .device = "object",
                 .cause = "S3 has no call that changes a part of an object",
                 .remedy = "write all bytes of the pin in one transfer"};
  out->cut(partOf(bytes, most_part));
  out->first_.push_back({out->parts_.size() == 1 ? TaskStep::kPut : TaskStep::kCreate});
  for (std::uint32_t i = 0; i < out->parts_.size(); ++i) out->upload_parts_.push_back({i + 1});
  return out;
}

std::shared_ptr<Task> Task::single(s3::ObjectName name, TaskStep step) {
  std::shared_ptr<Task> out(new Task(std::move(name)));
  out->first_.push_back({step});
  return out;
}

std::shared_ptr<Task> Task::head(s3::ObjectName name) {
  return single(std::move(name), TaskStep::kHead);
}
std::shared_ptr<Task> Task::probe(s3::ObjectName name) {
  return single(std::move(name), TaskStep::kProbe);
}

std::shared_ptr<Task> Task::create(s3::ObjectName name) {
  return single(std::move(name), TaskStep::kCreate);
}

std::shared_ptr<Task> Task::part(s3::ObjectName name, std::string upload, std::uint32_t number,
                                 std::vector<ObjectPiece> pieces) {
  auto out = single(std::move(name), TaskStep::kPart);
  out->upload_ = std::move(upload);
  out->borrows_upload_ = true;
  out->upload_parts_.push_back({number});
  out->pieces_ = std::move(pieces);
  out->cut(std::numeric_limits<std::uint64_t>::max());
  return out;
}

std::shared_ptr<Task> Task::complete(s3::ObjectName name, std::string upload,
                                     std::vector<UploadPart> parts) {
  auto out = single(std::move(name), TaskStep::kComplete);
  out->upload_ = std::move(upload);
  out->borrows_upload_ = true;
  out->upload_parts_ = std::move(parts);
  return out;
}

std::shared_ptr<Task> Task::remove(s3::ObjectName name) {
  return single(std::move(name), TaskStep::kDelete);
}

std::shared_ptr<Task> Task::abort(s3::ObjectName name, std::string upload) {
  auto out = single(std::move(name), TaskStep::kAbort);
  out->upload_ = std::move(upload);
  return out;
}

// Cuts the pieces into parts of contiguous bytes of the object.
void Task::cut(std::uint64_t most_part) {
  for (std::size_t i = 0; i < pieces_.size(); ++i) {
    const ObjectPiece& piece = pieces_[i];
    for (std::uint64_t skip = 0; skip != piece.bytes;) {
      const std::uint64_t offset = piece.offset + skip;
      const bool goes_on = !parts_.empty() && parts_.back().range.last + 1 == offset &&
                           parts_.back().range.bytes() < most_part;
      if (!goes_on) parts_.push_back({{offset, offset - 1}, i, skip});
      s3::ByteRange& range = parts_.back().range;
      const std::uint64_t step = std::min(piece.bytes - skip, most_part - range.bytes());
      range.last += step;
      skip += step;
    }
  }
  open_ = parts_.size();
}

std::vector<Ask> Task::begin() const { return first_; }

s3::Query Task::query(Ask ask) const {
  switch (ask.step) {
    case TaskStep::kCreate:
      return {{"uploads", ""}};
    case TaskStep::kPart:
      return {{"partNumber", std::to_string(upload_parts_[ask.part].number)},
              {"uploadId", upload_}};
    case TaskStep::kComplete:
    case TaskStep::kAbort:
      return {{"uploadId", upload_}};
    default:
      return {};
  }
}

s3::HttpRequest Task::request(Ask ask) const {
  switch (ask.step) {
    case TaskStep::kGet: {
      const s3::ByteRange range = parts_[ask.part].range;
      s3::HttpRequest out{.head = {fmt::format("Range: bytes={}-{}", range.first, range.last)},
                          .range = range};
      if (!etag_.empty()) out.head.push_back("If-Match: " + etag_);
      return out;
    }
    case TaskStep::kPut:
    case TaskStep::kPart:
      return {.method = "PUT"};
    case TaskStep::kCreate:
      return {.method = "POST"};
    case TaskStep::kComplete:
      return {.method = "POST", .body = completion()};
    case TaskStep::kAbort:
    case TaskStep::kDelete:
      return {.method = "DELETE"};
    case TaskStep::kProbe:
      return {.head = {"Range: bytes=0-0"}};
    case TaskStep::kHead:
      break;
  }
  return {.method = "HEAD"};
}

void Task::describe(Ask ask, s3::MemoryStream& memory) const {
  if (ask.step != TaskStep::kGet && ask.step != TaskStep::kPut && ask.step != TaskStep::kPart)
    return;
  const ObjectPart& part = parts_[ask.part];
  std::uint64_t left = part.range.bytes(), skip = part.skip;
  for (std::size_t i = part.piece; left != 0; ++i, skip = 0) {
    const std::uint64_t step = std::min(left, pieces_[i].bytes - skip);
    memory.append(pieces_[i].memory + skip, step);
    left -= step;
  }
}

std::string Task::operation(Ask ask) const {
  const std::string name = name_.text();
  const std::string upload =
      upload_.empty() ? "" : fmt::format(" of upload {}", base::printable(upload_, kMostUpload));
  switch (ask.step) {
    case TaskStep::kGet:
      return fmt::format("GET {} bytes {}-{}", name, parts_[ask.part].range.first,
                         parts_[ask.part].range.last);
    case TaskStep::kPut:
      return "PUT " + name;
    case TaskStep::kCreate:
      return "begin an upload of " + name;
    case TaskStep::kPart:
      return fmt::format("PUT {} part {}{}", name, upload_parts_[ask.part].number, upload);
    case TaskStep::kComplete:
      return fmt::format("complete {}{}", name, upload);
    case TaskStep::kAbort:
      return fmt::format("abort {}{}", name, upload);
    case TaskStep::kDelete:
      return "DELETE " + name;
    case TaskStep::kProbe:
      return fmt::format("GET {} bytes 0-0", name);
    case TaskStep::kHead:
      break;
  }
  return "HEAD " + name;
}

std::string Task::completion() const {
  std::string out = "<CompleteMultipartUpload>";
  for (const UploadPart& part : upload_parts_)
    out += fmt::format("<Part><PartNumber>{}</PartNumber><ETag>{}</ETag></Part>", part.number,
                       s3::escapeXml(part.etag));
  return out + "</CompleteMultipartUpload>";
}

Error Task::wrong(Ask ask, std::string detail, std::string cause) const {
  return {.code = Code::kProtocol,
          .operation = operation(ask),
          .detail = std::move(detail),
          .device = "object",
          .cause = std::move(cause),
          .remedy = "check the server"};
}

Result<std::vector<Ask>> Task::answered(Ask ask, const s3::Answer& answer) {
  switch (ask.step) {
    case TaskStep::kGet:
      return tookRange(ask, answer);
    case TaskStep::kHead:
    case TaskStep::kProbe:
      VIADUCT_CHECK(tookFacts(ask, answer));
      break;
    case TaskStep::kAbort:
    case TaskStep::kComplete:
      upload_.clear();
      break;
    case TaskStep::kPut:
    case TaskStep::kDelete:
      break;
    default:
      return tookUpload(ask, answer);
  }
  done_ = true;
  return std::vector<Ask>{};
}

Status Task::tookFacts(Ask ask, const s3::Answer& answer) {
  auto bytes = base::numberIn<std::uint64_t>(answer.content_length);
  if (ask.step == TaskStep::kProbe) s3::parseContentRange(answer.content_range, bytes);
  if (!bytes) return wrong(ask, "the answer does not tell the size", "the server is faulty");
  found_ = {name_, *bytes, answer.etag};
  return Ok{};
}

// All ranges have to come from one version of the object. The first answer sets the version, unless
// the pin does.
Result<std::vector<Ask>> Task::tookRange(Ask ask, const s3::Answer& answer) {
  if (etag_.empty()) etag_ = answer.etag;
  if (etag_ != answer.etag)
    return wrong(ask, "the answers have different ETags",
                 "the object was replaced while it was read");
  done_ = --open_ == 0;
  return std::vector<Ask>{};
}

Result<std::vector<Ask>> Task::tookUpload(Ask ask, const s3::Answer& answer) {
  std::vector<Ask> next;
  if (ask.step == TaskStep::kCreate) {
    upload_ = s3::xmlText(answer.body, "UploadId");
    if (upload_.empty()) return wrong(ask, "the answer has no UploadId", "the server is faulty");
    for (std::uint32_t i = 0; i < parts_.size(); ++i) next.push_back({TaskStep::kPart, i});
    done_ = parts_.empty();
    return next;
  }
  if (answer.etag.empty()) return wrong(ask, "the answer has no ETag", "the server is faulty");
  upload_parts_[ask.part].etag = answer.etag;
  if (--open_ != 0) return next;
  done_ = borrows_upload_;
  if (!done_) next.push_back({TaskStep::kComplete});
  return next;
}

}  // namespace viaduct::object
