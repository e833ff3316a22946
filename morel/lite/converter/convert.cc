#include "morel/lite/converter/convert.h"

#include "morel/lite/converter/function.h"

namespace morel::lite {

Converted convert(const Graph& graph, const ConvertOptions& options) {
  const SymbolicSizes::Use use(graph.sizes.get());
  Shared shared(graph, options);
  FunctionConverter(shared).convert_model(graph, options);
  if (!options.fixed_sizes && graph.sizes)
    for (const SizeGuard& guard : graph.sizes->guards())
      shared.plan.guards.push_back({static_cast<Guard::Kind>(guard.kind), shared.sizes(guard.size)});
  return {std::move(shared.plan), shared.weights.take()};
}

}  // namespace morel::lite
