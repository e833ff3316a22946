// MindSpore's .ckpt files: one Protocol Buffers message
//   Checkpoint { repeated Value value = 1; }
//   Value { required string tag = 1; oneof { TensorProto tensor = 2; MapTensorProto maptensor = 3; } }
//   TensorProto { repeated int64 dims = 1; required string tensor_type = 2; required bytes tensor_content = 3; }
// and, if asked for, a footer of 17 bytes: "crc_num" and the CRC-32 of all bytes before it as a 10-byte big-endian
// number. Conventions (checked against MindSpore 2.8.0): dims are not packed; a scalar has no dims (older files: dims
// [0] and one element); a tensor above 512 MiB is cut into consecutive values with the same tag, each with the dims of
// the whole; a string has tensor_type "str", dims [0] and UTF-32 content.
#pragma once

#include <span>
#include <string>

#include "morel/io/named_tensor.h"

namespace morel {

struct CkptReadOptions {
  bool check_crc = false;  // compare the footer, where there is one, with the content
};
struct CkptWriteOptions {
  bool crc = false;
  uint64_t slice_bytes = uint64_t{512} << 20;
};

// Files that are truncated, damaged or of another kind raise Value with the byte where it shows; types that Morel does
// not have raise NotImplemented. Of entries with the same name the last one counts, as in a message that was appended
// to.
TensorFile read_ckpt(const std::string& path, const CkptReadOptions& options = {});

// An older file at `path` is replaced only when all is written (AtomicFile).
void write_ckpt(const std::string& path, std::span<const NamedTensor> entries, const CkptWriteOptions& options = {});

}  // namespace morel
