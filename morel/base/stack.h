// How much of the calling thread's stack is left: what recurses as deeply as its data says asks before it goes on.
#pragma once

namespace morel {

// Whether less than a quarter of a MiB is left, which is enough for any one operator.
bool stack_is_low();

}  // namespace morel
