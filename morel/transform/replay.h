// Branches, bodies and functions whose gradient computes them again: they must draw the same random numbers, and their
// other effects must not come twice.
#pragma once

#include "morel/transform/effects.h"

namespace morel {

// The same graph with the generator's state before it as parameter number `place`. With `replays` it sets that state,
// so that it draws the same numbers whenever it runs.
Ref<Graph> with_rng_state(const Graph& graph, size_t place, bool replays);
// The generator's state before a node of the builder's graph runs.
Value rng_before(GraphBuilder& builder, Node& node);
// The generator's state becomes part of that of a `while` whose body draws, so that it is kept for every turn.
void carry_rng_state(GraphBuilder& builder, Node& node);

// What a graph computes, once more, among the nodes of the builder's graph: without its effects, and the
// generator stays as it was.
Values append_again(GraphBuilder& builder, const Graph& graph, std::span<const Value> arguments);

// The same graph without effects but random numbers: what reads memory of outside that was changed reads it as it is
// then.
Ref<Graph> without_effects(const Graph& graph);

}  // namespace morel
