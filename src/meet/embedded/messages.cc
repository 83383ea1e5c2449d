#include "meet/embedded/messages.h"

namespace viaduct::meet::embedded {
namespace {

constexpr std::string_view kMagic = "VDCTMEET";

}  // namespace

void OpenMessage::encode(base::Writer& out) const {
  out.raw(base::bytesOf(kMagic));
  base::Fields::put(out, major, minor, nonce);
}

void OpenMessage::decode(base::Reader& in) {
  if (base::textOf(in.raw(kMagic.size())) != kMagic) in.refuse();
  base::Fields::get(in, major, minor);
  // The message of another version may be longer or shorter, so the caller checks the version
  // first.
  if (major == kMajor)
    base::Fields::get(in, nonce);
  else
    in.raw(in.left());
}

void AnswerMessage::encode(base::Writer& out) const {
  base::Fields::put(out, request, error.has_value());
  if (error)
    base::Fields::put(out, ErrorMessage{*error});
  else
    base::Fields::put(out, value);
}

void AnswerMessage::decode(base::Reader& in) {
  bool failed = false;
  base::Fields::get(in, request, failed);
  if (!failed) return base::Fields::get(in, base::atMost(kMaxValueBytes, value));
  ErrorMessage why;
  base::Fields::get(in, why);
  error = std::move(why.error);
}

}  // namespace viaduct::meet::embedded
