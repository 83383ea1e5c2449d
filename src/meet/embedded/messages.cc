#include "meet/embedded/messages.h"

namespace viaduct::meet::embedded {

Error wrongToken() {
  return {.code = Code::kDenied,
          .operation = "hello",
          .detail = "the token is not the meeting place's",
          .cause = "a wrong or missing token, or another program answers at that address",
          .remedy =
              "give all members and the meeting place the same secret (--secret, VIADUCT_SECRET)"};
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
