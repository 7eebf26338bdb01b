// waiter_line.h: what a person is told while the device is somebody else's.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "gpu_runner/device_folder.h"

namespace crucible {

// "pid 12 `python bench.py` in /home/me/w1, mission m3, for 12.0 s of 10 min 00 s"
std::string DescribeHolder(const std::optional<HolderRecord>& record, std::int64_t now_ms);

// Words as one would type them, cut after `max_length` characters.
std::string ShellWords(const std::vector<std::string>& argv, std::size_t max_length = 80);

}  // namespace crucible
