#include "agent/session/sent_frames.h"

#include <utility>

namespace viaduct::agent {

void SentFrames::add(FrameType type, ByteSpan head, ByteSpan body) {
  ++sent_;
  if (full_) return;
  bytes_ += kFrameHeaderBytes + head.size() + body.size();
  if (bytes_ > limit_) {
    full_ = true;
    bytes_ = 0;
    std::deque<Kept>().swap(kept_);
    return;
  }
  base::Bytes payload;
  payload.reserve(head.size() + body.size());
  payload.insert(payload.end(), head.begin(), head.end());
  payload.insert(payload.end(), body.begin(), body.end());
  kept_.push_back({type, std::move(payload)});
}

bool SentFrames::heard(std::uint64_t count) {
  if (count > sent_) return false;
  full_ = full_ && count < sent_;
  while (kept_.size() > sent_ - count) {
    bytes_ -= kFrameHeaderBytes + kept_.front().payload.size();
    kept_.pop_front();
  }
  return true;
}

void SentFrames::clear() {
  std::deque<Kept>().swap(kept_);
  bytes_ = 0;
  sent_ = 0;
  full_ = false;
}

}  // namespace viaduct::agent
