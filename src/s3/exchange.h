// One HTTP request at a time over libcurl, from and to the user's memory. Threads: the mover's.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/net/curl_library.h"
#include "s3/answer.h"
#include "s3/memory_stream.h"

namespace viaduct::s3 {

// Cannot be moved, because the curl handle has pointers to it.
class Exchange {
 public:
  // `curl` outlives the exchange. `ca_file`: empty means the system's authorities.
  Exchange(const base::CurlLibrary& curl, std::string ca_file);
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;
  ~Exchange() = default;

  // Prepares the handle. `memory` gets the bytes of a range, or has those of a PUT; it may be null
  // for other requests. False: libcurl is out of memory.
  bool prepare(HttpRequest request, MemoryStream* memory);
  CURL* handle() const { return easy_.get(); }
  // The answer, after libcurl has ended the request with this code.
  Answer finish(CURLcode code);

 private:
  static std::size_t onHeader(char* data, std::size_t size, std::size_t count, void* self);
  static std::size_t onBytes(char* data, std::size_t size, std::size_t count, void* self);
  static std::size_t onRead(char* into, std::size_t size, std::size_t count, void* self);
  static int onSeek(void* self, curl_off_t offset, int origin);
  void configure();
  void keepHeader(std::string_view line);
  bool takes(const char* data, std::size_t bytes);
  bool isTheRange();
  Fault faultOf(CURLcode code) const;

  const base::CurlLibrary& curl_;
  const std::string ca_file_;
  std::unique_ptr<CURL, decltype(base::CurlLibrary::curl_easy_cleanup)> easy_;
  std::unique_ptr<curl_slist, decltype(base::CurlLibrary::curl_slist_free_all)> head_;
  char error_[CURL_ERROR_SIZE] = {};
  HttpRequest request_;
  MemoryStream* memory_ = nullptr;
  Answer answer_;
  bool in_range_ = false;  // the head of the answer was that of the range
};

}  // namespace viaduct::s3
