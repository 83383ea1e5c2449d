#include "backends/ofi/endpoint_regions.h"

#include <gtest/gtest.h>

#include <set>

#include "backends/ofi/remote_key.h"

namespace viaduct::ofi {
namespace {

// A fake domain with its one endpoint. Tests make calls fail, and read the keys of its memory.
class FakeDomain {
 public:
  FakeDomain() {
    table_.size = sizeof table_;
    table_.reg = [](fid* self, const void*, std::size_t, std::uint64_t, std::uint64_t,
                    std::uint64_t key, std::uint64_t, fid_mr** out,
                    void*) { return of(self).registered(key, out); };
    region_table_.size = sizeof region_table_;
    region_table_.bind = [](fid* self, fid* other, std::uint64_t) {
      return regionOf(self).bound(other);
    };
    region_table_.control = [](fid* self, int, void*) { return regionOf(self).enabled(); };
    region_table_.close = [](fid* self) { return regionOf(self).closed(); };
    domain_.fid.context = this;
    domain_.mr = &table_;
    endpoint_.fid.fclass = FI_CLASS_EP;
  }
  // The class is not copyable, because the regions refer to its members.
  FakeDomain(const FakeDomain&) = delete;
  FakeDomain& operator=(const FakeDomain&) = delete;
  ~FakeDomain() { EXPECT_EQ(regions_, 0) << "a region outlives its domain"; }

  Result<std::unique_ptr<EndpointRegions>> openIn(RailRegions& all) {
    return all.open(domain_, endpoint_);
  }

  enum class Call { kNone, kRegister, kBind, kEnable };
  Call refused = Call::kNone;
  bool chooses_keys = false;
  std::set<std::uint64_t> reached;  // keys of enabled regions

 private:
  struct Region : fid_mr {
    FakeDomain& domain;
    bool is_bound = false;
    explicit Region(FakeDomain& in) : fid_mr{}, domain(in) {}
    int bound(const struct ::fid* other) {
      if (domain.refused == Call::kBind || other != &domain.endpoint_.fid) return -FI_EINVAL;
      is_bound = true;
      return 0;
    }
    int enabled() {
      if (domain.refused == Call::kEnable || !is_bound) return -FI_ENOSPC;
      domain.reached.insert(key);
      return 0;
    }
    int closed() {
      --domain.regions_;
      domain.reached.erase(key);
      delete this;
      return 0;
    }
  };
  static FakeDomain& of(fid* self) { return *static_cast<FakeDomain*>(self->context); }
  static Region& regionOf(fid* self) {
    return static_cast<Region&>(*reinterpret_cast<fid_mr*>(self));
  }
  int registered(std::uint64_t key, fid_mr** out) {
    if (refused == Call::kRegister) return -FI_ENOMEM;
    if (reached.contains(key)) return -FI_ENOKEY;
    auto* const region = new Region(*this);
    region->fid.ops = &region_table_;
    region->key = chooses_keys ? key + 1 : key;
    ++regions_;
    *out = region;
    return 0;
  }

  fi_ops_mr table_{};
  fi_ops region_table_{};
  fid_domain domain_{};
  fid_ep endpoint_{};
  int regions_ = 0;
};
using Call = FakeDomain::Call;

constexpr MemoryRange kSome{.address = 0x10000, .bytes = 4096};

class EndpointRegionsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const auto there = library(); !there) GTEST_SKIP() << there.error().text();
  }
  std::unique_ptr<RegisteredMemory> added() {
    auto memory = all_.add(kSome);
    EXPECT_TRUE(memory) << memory.error().text();
    return memory ? *std::move(memory) : nullptr;
  }
  std::unique_ptr<EndpointRegions> opened(FakeDomain& domain) {
    auto regions = domain.openIn(all_);
    EXPECT_TRUE(regions) << regions.error().text();
    return regions ? *std::move(regions) : nullptr;
  }
  static RemoteMemory told(const RegisteredMemory& memory) {
    return unpacked(memory.key()).value_or(RemoteMemory{});
  }
  static std::uint64_t keyOf(const RegisteredMemory& memory) { return told(memory).key; }

  RailRegions all_{"fake/nic0", sizeof(std::uint64_t), false};
  FakeDomain one_, other_;
};

TEST_F(EndpointRegionsTest, MemoryHasOneKeyAtEveryEarlierAndLaterEndpoint) {
  const auto first = opened(one_);
  const auto memory = added();
  const auto second = opened(other_);
  EXPECT_EQ(one_.reached, std::set{keyOf(*memory)});
  EXPECT_EQ(other_.reached, one_.reached);
  EXPECT_EQ(told(*memory).base, kSome.address);
  EXPECT_EQ(memory->descriptor(), nullptr);
}

TEST_F(EndpointRegionsTest, DroppedMemoryHasNoKeyAtAnyEndpoint) {
  const auto first = opened(one_), second = opened(other_);
  const auto stays = added();
  added().reset();
  EXPECT_EQ(one_.reached, std::set{keyOf(*stays)});
  EXPECT_EQ(other_.reached, one_.reached);
}

TEST_F(EndpointRegionsTest, AClosedEndpointGetsNoMoreMemory) {
  auto first = opened(one_);
  const auto second = opened(other_);
  const auto before = added();
  first.reset();
  EXPECT_TRUE(one_.reached.empty());
  const auto after = added();
  EXPECT_TRUE(one_.reached.empty());
  EXPECT_EQ(other_.reached, (std::set{keyOf(*before), keyOf(*after)}));
}

TEST_F(EndpointRegionsTest, IfOneEndpointRefusesMemoryNoneHasIt) {
  const auto first = opened(one_), second = opened(other_);
  const auto before = added();
  for (const Call call : {Call::kRegister, Call::kBind, Call::kEnable}) {
    other_.refused = call;
    const auto memory = all_.add(kSome);
    ASSERT_FALSE(memory);
    EXPECT_NE(memory.error().text().find("4096 bytes at 0x10000"), std::string::npos);
    EXPECT_EQ(one_.reached, std::set{keyOf(*before)});
    EXPECT_EQ(other_.reached, one_.reached);
  }
  FakeDomain third;
  const auto regions = opened(third);
  EXPECT_EQ(third.reached, one_.reached) << "and none to come";
}

TEST_F(EndpointRegionsTest, AnEndpointThatRefusesSomeMemoryIsNotOpened) {
  const auto memory = added();
  other_.refused = Call::kEnable;
  EXPECT_FALSE(other_.openIn(all_));
  EXPECT_TRUE(other_.reached.empty());
  other_.refused = Call::kNone;
  const auto later = added();
  EXPECT_TRUE(other_.reached.empty()) << "it is known no more";
}

TEST_F(EndpointRegionsTest, AProviderThatStillChoosesTheKeysIsRefused) {
  const auto first = opened(one_);
  one_.chooses_keys = true;
  EXPECT_FALSE(all_.add(kSome));
}

// Keys of one byte repeat soon.
TEST_F(EndpointRegionsTest, TwoPiecesOfMemoryNeverShareAKey) {
  RailRegions all("fake/nic0", 1, true);
  std::vector<std::unique_ptr<RegisteredMemory>> memory;
  std::set<std::uint64_t> keys;
  while (memory.size() < 100) {
    auto one = all.add(kSome);
    if (!one) continue;  // four used keys in a row
    EXPECT_TRUE(keys.insert(keyOf(**one)).second);
    EXPECT_EQ(told(**one).base, 0U) << "it takes addresses";
    memory.push_back(*std::move(one));
  }
  EXPECT_LT(*keys.rbegin(), 256U);
}

}  // namespace
}  // namespace viaduct::ofi
