// A stable sort of a few elements, as lists of axes are: in place, where std::stable_sort asks for memory.
#pragma once

#include <utility>

namespace morel {

template <class T, class Before>
void short_sort(T* begin, T* end, Before&& before) {
  for (T* next = begin; next < end; ++next)
    for (T* at = next; at > begin && before(*at, at[-1]); --at) std::swap(*at, at[-1]);
}

}  // namespace morel
