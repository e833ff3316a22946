// Checkpoints, safetensors and IDX files: round trips, every way of being damaged, and a disk that is full.
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <numeric>
#include <random>

#include <gtest/gtest.h>

#include "morel/data/idx.h"
#include "morel/io/ckpt.h"
#include "morel/io/safetensors.h"

namespace morel {
namespace {

namespace fs = std::filesystem;

class IoTest : public ::testing::Test {
 protected:
  void SetUp() override {
    // Thousands of small files are written: in memory where possible.
    const fs::path memory = "/dev/shm";
    std::string name = (::access(memory.c_str(), W_OK) == 0 ? memory : fs::temp_directory_path()) / "morel-io-XXXXXX";
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { fs::remove_all(folder_); }
  std::string path(const std::string& name) const { return folder_ / name; }
  size_t files() const {
    return static_cast<size_t>(std::distance(fs::directory_iterator(folder_), fs::directory_iterator{}));
  }

  fs::path folder_;
};

std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}
void write_file(const std::string& path, std::string_view content) {
  std::ofstream(path, std::ios::binary).write(content.data(), static_cast<std::streamsize>(content.size()));
}

// The error of `call`, or "" when it returns.
Error error_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error;
  }
  return Error(ErrorKind::Internal, "");
}

template <class T>
NamedTensor named(std::string name, const Shape& shape, const std::vector<T>& values) {
  NamedTensor out;
  out.name = std::move(name);
  out.dtype = dtype_of<T>;
  out.shape = shape;
  out.pieces.push_back(std::as_bytes(std::span(values)));
  return out;
}
NamedTensor named_text(std::string name, std::string text) {
  NamedTensor out;
  out.name = std::move(name);
  out.text = std::move(text);
  return out;
}
template <class T>
std::vector<T> values_of(const NamedTensor& entry) {
  std::vector<T> out(entry.bytes() / sizeof(T));
  entry.copy_to(out.data());
  return out;
}

const std::vector<float> floats{0, 1, 2, 3, 4, 5};
const std::vector<int64_t> ints{-7};
const std::vector<BFloat16> halves{{0x3f80}, {0x4020}};
const std::vector<uint8_t> bytes{1, 2, 3};
const std::vector<double> nothing;

std::vector<NamedTensor> sample_entries() {
  return {named("weight", {2, 3}, floats), named("step", {}, ints), named("half", {2}, halves),
          named("bytes", {3, 1}, bytes), named("empty", {0, 3}, nothing)};
}

const NamedTensor& entry_named(const TensorFile& file, const std::string& name) {
  const auto found =
      std::find_if(file.entries.begin(), file.entries.end(), [&](const auto& e) { return e.name == name; });
  MOREL_CHECK(found != file.entries.end(), Key, name);
  return *found;
}

void expect_sample(const TensorFile& file) {
  ASSERT_EQ(file.entries.size(), 5u);
  EXPECT_EQ(entry_named(file, "weight").shape, Shape({2, 3}));
  EXPECT_EQ(values_of<float>(entry_named(file, "weight")), floats);
  EXPECT_EQ(entry_named(file, "step").shape, Shape({}));
  EXPECT_EQ(values_of<int64_t>(entry_named(file, "step")), ints);
  EXPECT_EQ(entry_named(file, "half").dtype, DType::BFloat16);
  EXPECT_EQ(values_of<uint8_t>(entry_named(file, "bytes")), bytes);
  EXPECT_EQ(entry_named(file, "empty").shape, Shape({0, 3}));
  EXPECT_EQ(entry_named(file, "empty").bytes(), 0u);
}

// Every prefix and `rounds` random mutations of a valid file: the reader returns or raises, and names the file when it
// does. (ASan builds prove that no byte outside is read.)
void fuzz(const std::string& path, const std::string& valid, int rounds, const std::function<void()>& read) {
  const auto attempt = [&](const std::string& content) {
    write_file(path, content);
    const Error error = error_of(read);
    if (error.message().empty()) return;
    EXPECT_TRUE(error.kind() == ErrorKind::Value || error.kind() == ErrorKind::NotImplemented) << error.what();
    EXPECT_NE(error.message().find(path), std::string::npos) << error.what();
  };
  const size_t step = std::max<size_t>(1, valid.size() / 600);
  for (size_t size = 0; size < valid.size(); size += step) attempt(valid.substr(0, size));
  std::mt19937 random(7);
  for (int round = 0; round < rounds; ++round) {
    std::string content = valid;
    for (unsigned edits = 1 + random() % 4; edits > 0; --edits) {
      const size_t position = random() % content.size();
      switch (random() % 5) {
        case 0: content[position] = static_cast<char>(random()); break;
        case 1: content[position] = static_cast<char>(content[position] ^ (1 << random() % 8)); break;
        case 2: content.erase(position, 1 + random() % 8); break;
        case 3: content.insert(position, content.substr(random() % content.size(), random() % 16)); break;
        default: content.insert(position, 1 + random() % 10, random() % 2 ? '\xff' : '\x80');
      }
      if (content.empty()) content = "x";
    }
    attempt(content);
  }
}

TEST_F(IoTest, CkptRoundTrip) {
  std::vector<NamedTensor> entries = sample_entries();
  write_ckpt(path("a.ckpt"), entries);
  expect_sample(read_ckpt(path("a.ckpt")));
  EXPECT_EQ(files(), 1u);
  entries.push_back(named_text("note", "Gr\xc3\xbc\xc3\x9f \xe4\xbd\xa0 \xf0\x9f\x98\x80"));
  write_ckpt(path("a.ckpt"), entries, {.crc = true});
  const TensorFile file = read_ckpt(path("a.ckpt"), {.check_crc = true});
  EXPECT_EQ(file.entries.back().text, entries.back().text);
}

// Bytes as MindSpore 2.8.0 writes them for {'w': float32[2], 's': a scalar, 'name': 'ab'}.
TEST_F(IoTest, CkptLayout) {
  const std::vector<float> pair{1, 2}, scalar{3};
  const std::vector<NamedTensor> entries{named("w", {2}, pair), named("s", {}, scalar), named_text("name", "ab")};
  write_ckpt(path("a.ckpt"), entries, {.crc = true});
  using namespace std::string_literals;
  const std::string message =
      "\x0a\x1a\x0a\x01w\x12\x15\x08\x02\x12\x07"s
      "Float32\x1a\x08\x00\x00\x80\x3f\x00\x00\x00\x40"s
      "\x0a\x14\x0a\x01s\x12\x0f\x12\x07"s
      "Float32\x1a\x04\x00\x00\x40\x40"s
      "\x0a\x19\x0a\x04name\x12\x11\x08\x00\x12\x03str\x1a\x08"s
      "a\0\0\0b\0\0\0"s;
  const std::string content = read_file(path("a.ckpt"));
  EXPECT_EQ(content.substr(0, content.size() - 17), message);
  EXPECT_EQ(content.substr(message.size(), 13), "crc_num\0\0\0\0\0\0"s);
}

TEST_F(IoTest, CkptSlices) {
  std::vector<int32_t> values(1000);
  std::iota(values.begin(), values.end(), 0);
  const std::vector<NamedTensor> entries{named("big", {10, 100}, values), named("weight", {2, 3}, floats)};
  for (const uint64_t slice : {1, 7, 100, 3999, 4000, 5000}) {
    write_ckpt(path("a.ckpt"), entries, {.slice_bytes = slice});
    const TensorFile file = read_ckpt(path("a.ckpt"));
    ASSERT_EQ(file.entries.size(), 2u);
    EXPECT_EQ(file.entries[0].pieces.size(), (4000 + slice - 1) / slice);
    EXPECT_EQ(values_of<int32_t>(file.entries[0]), values);
    EXPECT_EQ(values_of<float>(file.entries[1]), floats);
  }
  // One slice is missing.
  write_ckpt(path("a.ckpt"), entries, {.slice_bytes = 2000});
  std::string content = read_file(path("a.ckpt"));
  write_file(path("b.ckpt"), content.substr(content.size() - 2 * 24 - 10 - 2030));
  EXPECT_NE(error_of([&] { read_ckpt(path("b.ckpt")); }).message(), "");
}

TEST_F(IoTest, CkptAppendedMessageWins) {
  const std::vector<float> other{9, 9, 9, 9, 9, 9};
  write_ckpt(path("a.ckpt"), sample_entries());
  write_ckpt(path("b.ckpt"), std::vector{named("weight", {2, 3}, other)});
  write_file(path("c.ckpt"), read_file(path("a.ckpt")) + read_file(path("b.ckpt")));
  const TensorFile file = read_ckpt(path("c.ckpt"));
  ASSERT_EQ(file.entries.size(), 5u);
  EXPECT_EQ(file.entries.back().name, "weight");
  EXPECT_EQ(values_of<float>(file.entries.back()), other);
}

TEST_F(IoTest, CkptErrorsNameFileAndByte) {
  using namespace std::string_literals;
  const auto message = [&](const std::string& content) {
    write_file(path("bad.ckpt"), content);
    return error_of([&] { read_ckpt(path("bad.ckpt"), {.check_crc = true}); }).message();
  };
  const auto has = [](const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
  };
  EXPECT_EQ(message(""), "");  // a checkpoint without values
  EXPECT_TRUE(has(message("PK\3\4 zip"), "zip archive"));
  EXPECT_TRUE(
      has(message("\x0a\x05\x0a\x01w"s), path("bad.ckpt") + ": byte 1: a value has 5 bytes, but only 3 follow"));
  EXPECT_TRUE(has(message("\x0a\x03\x0a\x01w"s), "holds no tensor"));
  EXPECT_TRUE(has(message("\x0a\x0c\x0a\x01w\x12\x07\x12\x05Int32"s), "a tensor has no content"));
  EXPECT_TRUE(
      has(message("\x0a\x10\x0a\x01w\x12\x0b\x12\x04Int4\x1a\x03zzz"s), "'w' is of type 'Int4'; supported are Bool"));
  EXPECT_TRUE(
      has(message("\x0a\x11\x0a\x01w\x12\x0c\x12\x05Int32\x1a\x03zzz"s), "should have 4 bytes, but only 3 are there"));
  write_ckpt(path("a.ckpt"), sample_entries(), {.crc = true});
  std::string content = read_file(path("a.ckpt"));
  content[40] = static_cast<char>(content[40] ^ 1);
  EXPECT_TRUE(has(message(content), "the CRC-32 of the content is"));
  EXPECT_EQ(error_of([&] { read_ckpt(path("none.ckpt")); }).kind(), ErrorKind::Os);
  EXPECT_EQ(error_of([&] { read_ckpt(folder_); }).kind(), ErrorKind::Os);
}

TEST_F(IoTest, CkptFuzz) {
  auto entries = sample_entries();
  entries.push_back(named_text("note", "text"));
  write_ckpt(path("a.ckpt"), entries, {.crc = true, .slice_bytes = 16});
  fuzz(path("fuzz.ckpt"), read_file(path("a.ckpt")), 1500, [&] {
    const TensorFile file = read_ckpt(path("fuzz.ckpt"));
    for (const NamedTensor& entry : file.entries) values_of<uint8_t>(entry);
  });
}

TEST_F(IoTest, SafetensorsRoundTrip) {
  write_safetensors(path("a.safetensors"), sample_entries(), {{"format", "ms"}});
  const TensorFile file = read_safetensors(path("a.safetensors"));
  expect_sample(file);
  EXPECT_EQ(file.metadata.at("format"), "ms");
  for (const NamedTensor& entry : file.entries)
    EXPECT_EQ(reinterpret_cast<uintptr_t>(entry.pieces[0].data()) % static_cast<uintptr_t>(size_of(entry.dtype)), 0u);
  EXPECT_EQ(files(), 1u);
  const std::vector<std::complex<double>> complex{{1, 2}};
  EXPECT_EQ(error_of([&] { write_safetensors(path("b"), std::vector{named("c", {1}, complex)}); }).kind(),
            ErrorKind::NotImplemented);
  EXPECT_EQ(error_of([&] { write_safetensors(path("b"), std::vector{named_text("t", "x")}); }).kind(),
            ErrorKind::NotImplemented);
  EXPECT_EQ(files(), 1u);
}

TEST_F(IoTest, SafetensorsErrors) {
  const auto message = [&](const std::string& json, const std::string& data) {
    const uint64_t size = json.size();
    write_file(path("bad"), std::string(reinterpret_cast<const char*>(&size), 8) + json + data);
    return error_of([&] { read_safetensors(path("bad")); }).message();
  };
  const auto has = [](const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
  };
  EXPECT_EQ(message(R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}})", "xx"), "");
  EXPECT_TRUE(has(message("{\"a\":", ""), "byte 13: the header is no valid JSON"));
  EXPECT_TRUE(has(message("[]", ""), "no JSON object"));
  EXPECT_TRUE(has(message(R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}})", "x"), "the file ends before"));
  EXPECT_TRUE(has(message(R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}})", "xxx"), "1 bytes after"));
  EXPECT_TRUE(has(message(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}})", "xx"), "overlaps or has a gap"));
  EXPECT_TRUE(has(message(R"({"a":{"dtype":"U8","shape":[3],"data_offsets":[0,2]}})", "xx"), "has 2 bytes"));
  EXPECT_TRUE(has(message(R"({"a":{"dtype":"U8","shape":[-1],"data_offsets":[0,2]}})", "xx"), "natural numbers"));
  EXPECT_TRUE(
      has(message(R"({"a":{"dtype":"F8_E5M2","shape":[2],"data_offsets":[0,2]}})", "xx"), "'F8_E5M2'; supported"));
  EXPECT_TRUE(has(message(R"({"a":{"dtype":"U8","shape":[0],"data_offsets":[0,0]},"a":{}})", ""), "names 'a' twice"));
  EXPECT_TRUE(
      has(message(R"({"a":{"dtype":"F64","shape":[4611686018427387904,4],"data_offsets":[0,0]}})", ""), "has 0 bytes"));
  EXPECT_TRUE(has(message(std::string(100000, '['), ""), "no valid JSON"));
}

TEST_F(IoTest, SafetensorsFuzz) {
  write_safetensors(path("a"), sample_entries(), {{"format", "ms"}});
  fuzz(path("fuzz"), read_file(path("a")), 1500, [&] {
    const TensorFile file = read_safetensors(path("fuzz"));
    for (const NamedTensor& entry : file.entries) values_of<uint8_t>(entry);
  });
}

// --- a full disk
// --------------------------------------------------------------------------------------------------------

// In a child process, so that the limit ends with it. 0: the write failed as it should; others say what went wrong.
int with_file_limit(uint64_t limit, const std::function<int()>& body) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::signal(SIGXFSZ, SIG_IGN);
    const rlimit sizes{limit, limit};
    ::setrlimit(RLIMIT_FSIZE, &sizes);
    ::_exit(body());
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 100;
}

TEST_F(IoTest, FailedWriteKeepsTheOldFile) {
  const std::vector<float> many(100000);
  const std::vector<NamedTensor> entries{named("many", {100000}, many)};
  for (const std::string name : {"old.ckpt", "old.safetensors"}) {
    const bool ckpt = name == "old.ckpt";
    const auto write = [&](std::span<const NamedTensor> values) {
      ckpt ? write_ckpt(path(name), values) : write_safetensors(path(name), values);
    };
    write(sample_entries());
    const std::string before = read_file(path(name));
    for (const uint64_t limit : {0, 4096, 65536, 399999}) {
      EXPECT_EQ(
          with_file_limit(limit, [&] { return error_of([&] { write(entries); }).kind() == ErrorKind::Os ? 0 : 1; }), 0);
      EXPECT_EQ(read_file(path(name)), before);
    }
    EXPECT_EQ(files(), 1u) << "a temporary file was left behind";
    fs::remove(path(name));
  }
}

TEST_F(IoTest, FullDiskKeepsTheOldFile) {
  if (::mount("tmpfs", folder_.c_str(), "tmpfs", 0, "size=256k") != 0)
    GTEST_SKIP() << "needs the right to mount a tmpfs";
  const std::vector<float> many(100000);
  write_ckpt(path("old.ckpt"), sample_entries());
  const Error error = error_of([&] { write_ckpt(path("old.ckpt"), std::vector{named("many", {100000}, many)}); });
  EXPECT_EQ(error.kind(), ErrorKind::Os);
  EXPECT_NE(error.message().find("No space left"), std::string::npos) << error.what();
  EXPECT_NE(error.message().find("unchanged"), std::string::npos) << error.what();
  expect_sample(read_ckpt(path("old.ckpt")));
  EXPECT_EQ(files(), 1u);
  ::umount(folder_.c_str());
}

TEST_F(IoTest, AtomicFile) {
  EXPECT_EQ(error_of([&] { AtomicFile file(path("no/such/folder")); }).kind(), ErrorKind::Os);
  EXPECT_EQ(error_of([&] { AtomicFile file{std::string(folder_)}; }).kind(), ErrorKind::Os);
  write_file(path("target"), "old");
  fs::create_symlink("target", path("link"));
  {
    AtomicFile abandoned(path("link"));
    abandoned.write(as_bytes("new"));
  }
  EXPECT_EQ(read_file(path("target")), "old");
  AtomicFile file(path("link"));
  file.write(as_bytes(std::string(200000, 'x')));
  file.write(as_bytes("y"));
  file.commit();
  EXPECT_EQ(read_file(path("target")), std::string(200000, 'x') + "y");
  EXPECT_TRUE(fs::is_symlink(path("link")));
  EXPECT_EQ(files(), 2u);
}

// --- IDX
// ----------------------------------------------------------------------------------------------------------------

std::string gzip(const std::string& content) {
  z_stream stream{};
  ::deflateInit2(&stream, 6, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY);
  std::string out(::deflateBound(&stream, content.size()) + 64, '\0');
  stream.next_in = reinterpret_cast<unsigned char*>(const_cast<char*>(content.data()));
  stream.avail_in = static_cast<unsigned>(content.size());
  stream.next_out = reinterpret_cast<unsigned char*>(out.data());
  stream.avail_out = static_cast<unsigned>(out.size());
  ::deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  ::deflateEnd(&stream);
  return out;
}

using namespace std::string_literals;
const std::string idx_u8 =
    "\0\0\x08\x02\0\0\0\x02\0\0\0\x03"s
    "abcdef"s;

TEST_F(IoTest, IdxReads) {
  for (const std::string& content : {idx_u8, gzip(idx_u8), gzip(idx_u8.substr(0, 7)) + gzip(idx_u8.substr(7))}) {
    write_file(path("a"), content);
    const Tensor tensor = read_idx(path("a"));
    EXPECT_EQ(tensor.dtype(), DType::UInt8);
    EXPECT_EQ(tensor.shape(), Shape({2, 3}));
    EXPECT_EQ(std::string(tensor.as<char>(), 6), "abcdef");
  }
  write_file(path("a"), "\0\0\x0b\x01\0\0\0\x02\x01\x02\xff\xfe"s);
  EXPECT_EQ(read_idx(path("a")).as<int16_t>()[0], 0x0102);
  EXPECT_EQ(read_idx(path("a")).as<int16_t>()[1], -2);
  write_file(path("a"), "\0\0\x0d\x01\0\0\0\x01\x3f\x80\0\0"s);
  EXPECT_EQ(read_idx(path("a")).as<float>()[0], 1.0f);
  write_file(path("a"), "\0\0\x0e\x01\0\0\0\x01\x3f\xf0\0\0\0\0\0\0"s);
  EXPECT_EQ(read_idx(path("a")).as<double>()[0], 1.0);
  write_file(path("a"), "\0\0\x08\x02\0\0\0\0\0\0\0\x03"s);
  EXPECT_EQ(read_idx(path("a")).size(), 0);
}

TEST_F(IoTest, IdxErrors) {
  const auto message = [&](const std::string& content) {
    write_file(path("bad"), content);
    return error_of([&] { read_idx(path("bad")); }).message();
  };
  const auto has = [](const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
  };
  EXPECT_TRUE(has(message(""), path("bad") + ": byte 0: not an IDX file"));
  EXPECT_TRUE(has(message("hello world"), "it starts with the bytes 104, 101, 108"));
  EXPECT_TRUE(has(message(idx_u8.substr(0, 9)), "byte 8: the file ends inside the 2 dimensions"));
  EXPECT_TRUE(has(message(idx_u8.substr(0, 15)), "byte 12: an array of shape [2,3] needs 6 bytes"));
  EXPECT_TRUE(has(message(gzip(idx_u8.substr(0, 15))), "byte 15: the file ends after 3 of 6 bytes"));
  EXPECT_TRUE(has(message(idx_u8 + "x"), "byte 18: the file goes on"));
  EXPECT_TRUE(has(message("\0\0\x08\x03\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"s), "is too large"));
  EXPECT_TRUE(has(message("\0\0\x08\x04\0\0\0\0\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"s), "is too large"));
  EXPECT_TRUE(has(message(gzip("\0\0\x08\x02\x7f\xff\xff\xff\x7f\xff\xff\xff"s)), "more than the file holds"));
  EXPECT_TRUE(has(message(gzip(idx_u8).substr(0, 20)), "the compressed data ends early"));
  EXPECT_EQ(error_of([&] { read_idx(path("none")); }).kind(), ErrorKind::Os);
}

TEST_F(IoTest, IdxFuzz) {
  const auto read = [&] { read_idx(path("fuzz")); };
  fuzz(path("fuzz"), idx_u8, 1500, read);
  fuzz(path("fuzz"), gzip(idx_u8), 500, read);
}

TEST(Idx, FashionMnist) {
  const std::string folder = "/usr/share/datasets/fashion-mnist/";
  if (!fs::exists(folder)) GTEST_SKIP() << "Debian's dataset-fashion-mnist is not installed";
  const Tensor images = read_idx(folder + "t10k-images-idx3-ubyte.gz"),
               labels = read_idx(folder + "t10k-labels-idx1-ubyte.gz");
  EXPECT_EQ(images.shape(), Shape({10000, 28, 28}));
  EXPECT_EQ(std::count(labels.as<uint8_t>(), labels.as<uint8_t>() + 10000, 9), 1000);
}

}  // namespace
}  // namespace morel
