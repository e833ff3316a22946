// The .ms file of a plan: a small header, then sections, each with a checksum.
//
//   byte 0   "MOREL.MS"           8 bytes
//        8   version              uint32    (fields.h: plan_version)
//       12   number of sections   uint32
//       16   bytes of the file    uint64
//       24   checksum             uint64    of the header (with 0 here) and the table of sections
//       32   sections             32 bytes each: kind uint32, 0 uint32, offset int64, bytes int64, checksum uint64
//
// Section 1 is the plan, section 2 the weights; a reader skips kinds that it does not know. Everything is
// little-endian. The weights section starts at a multiple of 4096; a tensor in it at a multiple of 64, one of 64 KiB or
// more at a multiple of 4096, so that a mapped file is used where it lies.
#pragma once

#include "morel/base/file.h"
#include "morel/lite/plan.h"

namespace morel::lite {

inline constexpr char file_mark[8] = {'M', 'O', 'R', 'E', 'L', '.', 'M', 'S'};
inline constexpr size_t header_bytes = 32, section_entry_bytes = 32;
inline constexpr size_t page_bytes = 4096, weight_alignment = 64, large_weight_bytes = 65536;
enum class SectionKind : uint32_t { Plan = 1, Weights = 2 };

// Start of a weight of so many bytes that may not lie before `end`.
inline int64_t weight_offset(int64_t end, int64_t bytes) {
  const int64_t unit = bytes >= static_cast<int64_t>(large_weight_bytes) ? page_bytes : weight_alignment;
  return (end + unit - 1) / unit * unit;
}

// Any changed bit, and nearly any other damage, changes it.
uint64_t checksum(Bytes bytes);

struct PlanFile {
  Plan plan;
  Bytes weights;  // within the bytes of the file
};
// Reads and checks a whole file; what is wrong with it is a ValueError with `name` and the offset. Everything that the
// plan refers to is there and within bounds then.
PlanFile read_plan(Bytes file, const std::string& name);

// The plan as bytes of a file; `weights` are placed with weight_offset().
std::vector<std::byte> write_plan(const Plan& plan, Bytes weights);

}  // namespace morel::lite
