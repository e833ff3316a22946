// What a library for one device has instead of tensor/symbolic.cc: the sizes of its tensors are numbers.
#include "morel/base/error.h"
#include "morel/tensor/dim.h"
#include "morel/tensor/dtype.h"

namespace morel {
namespace {

[[noreturn]] void raise_symbolic() { raise(ErrorKind::Internal, "internal error: a size is no number"); }

}  // namespace

void raise_not_compiled(DType dtype) {
  raise(ErrorKind::NotImplemented, "this library is compiled without ", info(dtype).name);
}

int64_t Dim::specialised() const { raise_symbolic(); }
bool Dim::equal(Dim, Dim) { raise_symbolic(); }
bool Dim::less(Dim, Dim) { raise_symbolic(); }
Dim Dim::sum(Dim, Dim) { raise_symbolic(); }
Dim Dim::difference(Dim, Dim) { raise_symbolic(); }
Dim Dim::product(Dim, Dim) { raise_symbolic(); }
Dim Dim::quotient(Dim, Dim) { raise_symbolic(); }
Dim Dim::remainder(Dim, Dim) { raise_symbolic(); }

std::string to_string(Dim dim) { return std::to_string(static_cast<int64_t>(dim)); }

}  // namespace morel
