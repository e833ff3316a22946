#include "morel/lite/container.h"

#include <bit>
#include <cstring>

#include "morel/lite/archive.h"
#include "morel/lite/verify.h"

namespace morel::lite {
namespace {

static_assert(std::endian::native == std::endian::little, "files are little-endian and read as they lie");

template <class T>
T number_at(Bytes bytes, size_t offset) {
  T out;
  std::memcpy(&out, bytes.data() + offset, sizeof(T));
  return out;
}

constexpr size_t checksum_at = 24;
constexpr uint32_t max_sections = 64;

struct Section {
  uint32_t kind;
  uint64_t offset, bytes, sum;
};

// Of header and table, with the checksum itself taken as 0.
uint64_t header_checksum(Bytes head) {
  std::vector<std::byte> copy(head.begin(), head.begin() + checksum_at);
  copy.resize(header_bytes);
  copy.insert(copy.end(), head.begin() + header_bytes, head.end());
  return checksum(copy);
}

void check_header(Bytes file, const std::string& name) {
  if (file.size() >= 8 && std::memcmp(file.data() + 4, "MSL2", 4) == 0)
    raise(ErrorKind::NotImplemented, name, ": this is a model of MindSpore Lite; morel.lite runs those that it made");
  if (file.size() < header_bytes || std::memcmp(file.data(), file_mark, sizeof file_mark) != 0)
    raise_bad_file(name, 0, "this is no model for morel.lite");
  const uint32_t version = number_at<uint32_t>(file, 8);
  if (version != plan_version)
    raise_bad_file(name, 8, "the file has version ", version, " of the format, this library reads ", plan_version);
  const uint32_t count = number_at<uint32_t>(file, 12);
  if (count > max_sections || header_bytes + count * section_entry_bytes > file.size())
    raise_bad_file(name, 12, count, " sections do not fit into a file of ", file.size(), " bytes");
  const uint64_t bytes = number_at<uint64_t>(file, 16);
  if (bytes != file.size())
    raise_bad_file(name, 16, "the file has ", file.size(), " bytes, but should have ", bytes, ": it is incomplete");
  if (number_at<uint64_t>(file, checksum_at) != header_checksum(file.first(header_bytes + count * section_entry_bytes)))
    raise_bad_file(name, checksum_at, "the header is damaged: its checksum differs");
}

Bytes section_of(Bytes file, const std::string& name, SectionKind kind) {
  for (uint32_t i = 0; i < number_at<uint32_t>(file, 12); ++i) {
    const size_t at = header_bytes + i * section_entry_bytes;
    if (number_at<uint32_t>(file, at) != static_cast<uint32_t>(kind)) continue;
    const uint64_t offset = number_at<uint64_t>(file, at + 8), bytes = number_at<uint64_t>(file, at + 16);
    if (offset > file.size() || bytes > file.size() - offset)
      raise_bad_file(name, at + 8, "a section of ", bytes, " bytes at ", offset, " does not lie within the file");
    const Bytes out = file.subspan(offset, bytes);
    if (number_at<uint64_t>(file, at + 24) != checksum(out))
      raise_bad_file(name, offset, "the section is damaged: its checksum differs");
    return out;
  }
  raise_bad_file(name, header_bytes, "the file has no section of kind ", static_cast<uint32_t>(kind));
}

}  // namespace

// Four lanes of words, so that it runs at the speed of memory. Every step is a bijection of the state for given input,
// and of the input for a given state.
uint64_t checksum(Bytes bytes) {
  constexpr uint64_t factor = 0x9e3779b97f4a7c15u;
  uint64_t lanes[4] = {1, 2, 3, 4};
  const auto take = [&](const std::byte* from) {
    for (int i = 0; i < 4; ++i) {
      uint64_t word;
      std::memcpy(&word, from + 8 * i, 8);
      lanes[i] = (std::rotl(lanes[i], 29) ^ word) * factor;
    }
  };
  size_t at = 0;
  for (; at + 32 <= bytes.size(); at += 32) take(bytes.data() + at);
  std::byte rest[32] = {};
  if (at < bytes.size()) std::memcpy(rest, bytes.data() + at, bytes.size() - at);
  take(rest);
  uint64_t out = bytes.size();
  for (const uint64_t lane : lanes) out = (std::rotl(out, 29) ^ lane) * factor;
  return out ^ out >> 32;
}

PlanFile read_plan(Bytes file, const std::string& name) {
  check_header(file, name);
  const Bytes plan = section_of(file, name, SectionKind::Plan), weights = section_of(file, name, SectionKind::Weights);
  const uint64_t weights_at = static_cast<uint64_t>(weights.data() - file.data());
  if (weights_at % page_bytes)
    raise_bad_file(name, weights_at, "the weights do not start at a multiple of ", page_bytes);
  PlanFile out{{}, weights};
  const uint64_t offset = static_cast<uint64_t>(plan.data() - file.data());
  Reader reader(plan, name, offset);
  reader(out.plan);
  reader.finish();
  verify(out.plan, weights.size(), name, offset);
  return out;
}

std::vector<std::byte> write_plan(const Plan& plan, Bytes weights) {
  Writer writer;
  writer(const_cast<Plan&>(plan));  // fields() serves the reader too
  const std::vector<std::byte>& body = writer.bytes();
  const size_t body_at = header_bytes + 2 * section_entry_bytes;
  const size_t weights_at = (body_at + body.size() + page_bytes - 1) / page_bytes * page_bytes;
  std::vector<std::byte> file(weights_at + weights.size());
  const auto put = [&](size_t at, auto number) { std::memcpy(file.data() + at, &number, sizeof number); };
  std::memcpy(file.data(), file_mark, sizeof file_mark);
  put(8, plan_version);
  put(12, uint32_t{2});
  put(16, static_cast<uint64_t>(file.size()));
  const auto put_section = [&](size_t at, SectionKind kind, size_t offset, Bytes bytes) {
    put(at, static_cast<uint32_t>(kind));
    put(at + 8, static_cast<uint64_t>(offset));
    put(at + 16, static_cast<uint64_t>(bytes.size()));
    put(at + 24, checksum(bytes));
    if (!bytes.empty()) std::memcpy(file.data() + offset, bytes.data(), bytes.size());
  };
  put_section(header_bytes, SectionKind::Plan, body_at, body);
  put_section(header_bytes + section_entry_bytes, SectionKind::Weights, weights_at, weights);
  put(checksum_at, header_checksum(Bytes(file).first(body_at)));
  return file;
}

}  // namespace morel::lite
