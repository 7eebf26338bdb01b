// memory_file.h: a text as a descriptor at its start: a child that never reads it keeps nobody
// waiting, and nothing of it is on disk.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "base/fd.h"
#include "base/result.h"

namespace crucible {

inline Result<UniqueFd> MemoryFile(const std::string& text) {
  UniqueFd file(::memfd_create("crucible", MFD_CLOEXEC));
  std::size_t done = 0;
  while (file.valid() && done < text.size()) {
    const ssize_t count = ::write(file.get(), text.data() + done, text.size() - done);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) break;
    done += static_cast<std::size_t>(count);
  }
  if (!file.valid() || done < text.size() || ::lseek(file.get(), 0, SEEK_SET) != 0)
    return Fail(ErrorKind::kIo, "create", "file in memory", std::strerror(errno),
                "check the machine's memory");
  return file;
}

}  // namespace crucible
