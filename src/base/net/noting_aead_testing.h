// For tests: an Aead that seals nothing, and notes the messages of each nonce under each key.
// Threads: one at a time.
#pragma once

#include <map>
#include <set>
#include <utility>

#include "base/bytes.h"
#include "base/net/aead.h"

namespace viaduct::base {

class NotingAead final : public Aead {
 public:
  using Uses = std::map<std::pair<Key, Nonce>, std::set<Bytes>>;
  explicit NotingAead(Uses& uses) : uses_(uses) {}
  bool useKey(const Key& key) override {
    key_ = key;
    return true;
  }
  // False: the nonce has sealed another message.
  bool seal(const Nonce& nonce, ByteSpan aad, ByteSpan text, std::byte*, std::byte*) override {
    auto& sealed = uses_[{key_, nonce}];
    sealed.insert(Writer().sized(aad).sized(text).take());
    return sealed.size() == 1;
  }
  bool open(const Nonce&, ByteSpan, ByteSpan, std::byte*, const std::byte*) override {
    return false;
  }
  std::string_view library() const override { return "none"; }

 private:
  Uses& uses_;
  Key key_{};
};

}  // namespace viaduct::base
