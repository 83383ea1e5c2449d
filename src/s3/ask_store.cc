#include "s3/ask_store.h"

#include "base/net/curl_library.h"
#include "s3/exchange.h"

namespace viaduct::s3 {

Result<StoreAnswer> askStore(const Access& access, const std::string& bucket,
                             std::chrono::milliseconds limit) {
  VIADUCT_TRY(const base::CurlLibrary* const curl, base::curlLibrary());
  const Place place = placeOfList(bucket, access.endpoint);
  const Query query = bucket.empty() ? Query{} : Query{{"list-type", "2"}, {"max-keys", "1"}};
  const std::string operation = bucket.empty() ? "list the buckets" : "list s3://" + bucket;
  StoreAnswer out{.asked_at = std::chrono::system_clock::now()};
  Exchange exchange(*curl, access.ca_file);
  const bool prepared = exchange.prepare(
      signedRequest(
          {}, {.place = place, .query = query, .payload_hash = kEmptyPayload, .time = out.asked_at},
          access),
      nullptr);
  if (!prepared)
    return Error{.code = Code::kExhausted,
                 .operation = operation,
                 .detail = "libcurl is out of memory",
                 .device = "object"};
  curl->curl_easy_setopt(exchange.handle(), CURLOPT_TIMEOUT_MS, static_cast<long>(limit.count()));
  out.answer = exchange.finish(curl->curl_easy_perform(exchange.handle()));
  out.failure = failureOf(out.answer, {.operation = operation,
                                       .place = place,
                                       .credentials = access.credentials,
                                       .time = out.asked_at});
  return out;
}

}  // namespace viaduct::s3
