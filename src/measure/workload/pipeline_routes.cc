#include "measure/workload/pipeline_routes.h"

#include <utility>

namespace viaduct::measure::pipeline {
namespace {

// Returns place `at` as an end of a stage. If the place is memory, the stage gets its own memory
// with this label.
End endOf(const Pipeline& pipeline, std::size_t at, std::string label, bool ring) {
  const Place& place = pipeline.places[at];
  if (place.kind == Place::Kind::kStorage)
    return {at == 0 ? kSourceLabel : kDestinationLabel, place.rank};
  End out{std::move(label), place.rank, ring ? End::Kind::kRing : End::Kind::kMemory};
  if (place.kind == Place::Kind::kGpu) out.gpu = place.gpu;
  return out;
}

std::vector<Route> legsOf(const Pipeline& pipeline, const std::vector<Route>& stages) {
  if (!pipeline.hasGpu()) return {Route{"pipeline", stages.front().from, stages.back().into}};
  std::vector<Route> legs = stages;
  for (std::size_t i = 1; i < legs.size(); ++i) legs[i - 1].into = legs[i].from;
  return legs;
}

}  // namespace

std::vector<Route> routesOf(const Pipeline& pipeline) {
  const std::size_t last = pipeline.stages.size() - 1;
  // An object is written as a whole. So a last stage that writes one gets memory for all bytes, not
  // a ring.
  const bool object =
      pipeline.destination() != nullptr && pipeline.destination()->kind == MemoryKind::kObject;
  std::vector<Route> out;
  for (std::size_t i = 0; i <= last; ++i) {
    const std::string& name = pipeline.stages[i];
    out.push_back({name, endOf(pipeline, i, name + " from", i != 0 && !(object && i == last)),
                   endOf(pipeline, i + 1, name + " into", i != last)});
  }
  if (last == 0) return out;
  const std::vector<Route> legs = legsOf(pipeline, out);
  out.insert(out.end(), legs.begin(), legs.end());
  return out;
}

std::vector<Case> casesOf(const std::vector<Route>& routes, std::size_t stages) {
  std::vector<Case> out;
  Case together{"all stages together"}, chain{.name = "the pipeline", .chain = true};
  for (std::uint32_t i = 0; i < routes.size(); ++i) {
    if (i < stages) out.push_back({routes[i].name + " alone", {i}});
    (i < stages ? together : chain).routes.push_back(i);
  }
  if (stages == 1) return out;
  out.push_back(std::move(together));
  out.push_back(std::move(chain));
  return out;
}

}  // namespace viaduct::measure::pipeline
