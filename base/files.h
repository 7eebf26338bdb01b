// files.h: whole-file reads and writes that are never half done.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace crucible {

// The whole file as bytes.
Result<std::string> ReadFile(const std::filesystem::path& path);

// Writes beside the target, syncs, renames over it: a reader sees the old text or the new, and a
// full disk leaves the old. Creates missing parent folders.
Result<> WriteFileAtomically(const std::filesystem::path& path, std::string_view text);

// Appends one whole line (a '\n' is added) in one write().
Result<> AppendLine(const std::filesystem::path& path, std::string_view line);

Result<> MakeDirectories(const std::filesystem::path& path);

// Removes a tree; a path that does not exist is success. Refuses "/", "" and a relative path.
Result<> RemoveTree(const std::filesystem::path& path);

// Bytes free to an ordinary user on the file system that holds `path`.
Result<std::int64_t> FreeBytes(const std::filesystem::path& path);

// A new empty directory, mode 0700, under $TMPDIR or /tmp.
Result<std::filesystem::path> MakeTemporaryDirectory(std::string_view prefix);

}  // namespace crucible
