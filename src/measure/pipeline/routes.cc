#include "measure/pipeline/routes.h"

#include <utility>

#include "measure/pipeline/storage.h"

namespace viaduct::measure::pipeline {

std::vector<Route> routesOf(const Pipeline& pipeline) {
  const std::uint32_t last = pipeline.processes() - 1;
  // An object is written as a whole, so the store needs all of its bytes at once.
  const bool object = pipeline.destination && pipeline.destination->kind == MemoryKind::kObject;
  std::vector<Route> out;
  for (const StageKind kind : pipeline.stages) {
    const std::string name = stageName(kind);
    const bool is_first = kind == pipeline.stages.front(), is_last = kind == pipeline.stages.back();
    Route route{.name = name,
                .from = {PinnedStorage::kSourceLabel, 0},
                .into = {PinnedStorage::kDestinationLabel, last}};
    if (kind != StageKind::kLoad)
      route.from = {name + " from", kind == StageKind::kStore ? last : 0,
                    is_first || object ? End::Kind::kMemory : End::Kind::kRing};
    if (kind != StageKind::kStore)
      route.into = {name + " into", kind == StageKind::kLoad ? 0 : last,
                    is_last ? End::Kind::kMemory : End::Kind::kRing};
    out.push_back(std::move(route));
  }
  if (out.size() > 1) out.push_back({"pipeline", out.front().from, out.back().into});
  return out;
}

std::vector<Case> casesOf(const std::vector<Route>& routes) {
  std::vector<Case> out;
  Case together{"all stages together"};
  const std::size_t stages = routes.size() == 1 ? 1 : routes.size() - 1;
  for (std::uint32_t i = 0; i < stages; ++i) {
    out.push_back({routes[i].name + " alone", {i}});
    together.routes.push_back(i);
  }
  if (routes.size() == 1) return out;
  out.push_back(std::move(together));
  out.push_back({"the pipeline", {static_cast<std::uint32_t>(stages)}});
  return out;
}

}  // namespace viaduct::measure::pipeline
