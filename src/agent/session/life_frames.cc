#include "agent/session/life_frames.h"

#include <algorithm>
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

bool HeardFrames::take(std::uint64_t count) {
  if (before_ + count <= taken_) return false;
  taken_ = before_ + count;
  return true;
}

std::uint64_t HeardFrames::total(std::uint64_t count) const {
  return std::max(taken_, before_ + count);
}

void HeardFrames::goOn(std::uint64_t count, std::uint64_t after) {
  taken_ = total(count);
  before_ = after;
}

}  // namespace viaduct::agent
