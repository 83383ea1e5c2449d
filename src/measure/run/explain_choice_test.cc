#include "measure/run/explain_choice.h"

#include <gtest/gtest.h>

#include "base/json.h"

namespace viaduct::measure {
namespace {

using base::Json;
using base::parseJson;

using host::DistanceKind;

Attempt carried(OpKind op, const char* path) { return {.op = op, .carried = true, .text = path}; }

// The facts of a machine with two sockets and RDMA devices.
Explanation twoSockets() {
  Explanation out;
  out.backends = {
      {.info = {.name = "local",
                .open = true,
                .preference = 10,
                .same_host = true,
                .rails = {"memory"}},
       .link = "mapped",
       .attempts = {{.op = OpKind::kWrite, .text = "--require rdma forbids this path"},
                    {.op = OpKind::kRead, .text = "--require rdma forbids this path"}}},
      {.info = {.name = "ofi",
                .open = true,
                .text = "libfabric 1.17 over mlx5_0, mlx5_1",
                .preference = 20,
                .rdma = true,
                .rails = {"mlx5_0", "mlx5_1"}},
       .link = "verbs",
       .attempts = {carried(OpKind::kWrite, "ofi/verbs 4.0 KiB in 1 op"),
                    carried(OpKind::kRead, "ofi/verbs 4.0 KiB in 1 op")}},
      {.info = {.name = "ucx", .open = true, .preference = 21, .rdma = true, .rails = {"mlx5_0:1"}},
       .link = "rc",
       .attempts = {carried(OpKind::kWrite, "ucx/rc 4.0 KiB in 1 op"),
                    {.op = OpKind::kRead, .text = "lost"}}},
      {.info = {.name = "gone", .text = "not built in: there is no header"}}};
  out.asked.require = "rdma";
  out.serving = {{"ofi",
                  "node 1",
                  {{{DistanceKind::kNode}, {"mlx5_0", "mlx5_1"}},
                   {{DistanceKind::kOtherNode, 21}, {"mlx5_2"}}}}};
  return out;
}

TEST(Explanation, TheFirstBackendThatCarriesIsChosen) {
  Explanation all = twoSockets();
  EXPECT_EQ(all.chosen(OpKind::kWrite)->info.name, "ofi");
  all.backends[1].attempts[1].carried = false;
  EXPECT_EQ(all.chosen(OpKind::kWrite)->info.name, "ofi");
  EXPECT_EQ(all.chosen(OpKind::kRead), nullptr);
  all.backends[0].attempts[0].carried = true;
  EXPECT_EQ(all.chosen(OpKind::kWrite)->info.name, "local");
  EXPECT_EQ(all.betweenHosts(OpKind::kWrite)->info.name, "ofi");
  all.backends[0].attempts[0].staged = true;
  EXPECT_EQ(all.chosen(OpKind::kWrite)->info.name, "ofi");
}

TEST(Explanation, NamesTheResultOfEachBackend) {
  const std::string text = explanationText(twoSockets());
  for (const char* line :
       {"\n  10  local   open; rails: memory\n",
        "\n  20  ofi     open: libfabric 1.17 over mlx5_0, mlx5_1; rails: mlx5_0, mlx5_1\n",
        "\n   -  gone    not open: not built in: there is no header\n", "\nwrite: ofi\n",
        "\n  local   no: --require rdma forbids this path\n",
        "\n  ofi     yes: ofi/verbs 4.0 KiB in 1 op\n",
        "\n  ucx     possible, after ofi: ucx/rc 4.0 KiB in 1 op\n", "\n  ucx     no: lost\n",
        "\n  ofi     verbs\n", "\nBetween hosts: ofi,",
        "\n  ofi     node 1: mlx5_0 and mlx5_1 (same node), then mlx5_2 (another node,\n"
        "          distance 21)\n"})
    EXPECT_NE(text.find(line), std::string::npos) << line << text;
  EXPECT_NE(explanationText({}).find("write: no backend"), std::string::npos);
}

TEST(Explanation, SaysWhichNicsATransferUses) {
  Explanation all = twoSockets();
  const auto has = [&](const char* said) {
    return explanationText(all).find(said) != std::string::npos;
  };
  EXPECT_TRUE(has("a transfer uses the nearest NICs,"));
  all.asked.settings.rails = {"mlx5_0", "mlx5_2"};
  EXPECT_TRUE(has("the named NICs serve all memory"));
  EXPECT_FALSE(has("uses the nearest"));
}

TEST(Explanation, IsJsonAsWell) {
  const auto json = parseJson(explanationJson(twoSockets()));
  ASSERT_TRUE(json) << json.error().text();
  EXPECT_EQ(json->at("format"), "viaduct-explain/1");
  EXPECT_EQ(json->at("chosen").at("write"), "ofi");
  EXPECT_EQ(json->at("backends").at(2).at("read").at("carried"), false);
  EXPECT_EQ(json->at("backends").at(3).at("open"), false);
  EXPECT_EQ(json->at("nics").at(0).at("nearest_first").at(1).at("devices").at(0), "mlx5_2");
  const auto none = parseJson(explanationJson({}));
  EXPECT_TRUE(none->at("chosen").at("read").is_null());
}

TEST(Explanation, ARailIsFoundByNameAddressOrFront) {
  const std::vector<NamedNic> nics{
      {"eth0", {"10.0.0.1", "fe80::1"}}, {"mlx5_0", {}}, {"mlx5_1:2", {}}, {"rdmap0s31", {}}};
  for (const auto& [rail, nic] : {std::pair{"eth0", "eth0"},
                                  {"10.0.0.1", "eth0"},
                                  {"fe80::1", "eth0"},
                                  {"10.0.0.1#3", "eth0"},
                                  {"mlx5_0:1", "mlx5_0"},
                                  {"mlx5_1:2", "mlx5_1:2"},
                                  {"rdmap0s31-rdm", "rdmap0s31"},
                                  {"any", ""},
                                  {"any#1", ""},
                                  {"", ""}})
    EXPECT_EQ(nicOfRail(rail, nics), nic) << rail;
}

}  // namespace
}  // namespace viaduct::measure
