// charts.cc: a bar a case, and the geometric mean over time. Inline SVG, titles on hover.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "base/clock.h"
#include "results_log/dashboard/parts.h"

namespace crucible::dashboard {
namespace {

// The scale ends here (first time = 1); marks beyond stand at the end, with their true number.
constexpr double kScaleEnd = 1.3;

double Percent(double ratio) { return 100 * std::clamp(ratio, 0.0, kScaleEnd) / kScaleEnd; }

std::string Mark(const char* kind, double ratio, const std::string& title) {
  return fmt::format(
      "<line class=\"{}\" x1=\"{:.2f}%\" x2=\"{:.2f}%\" y1=\"0\" y2=\"24\">"
      "<title>{}</title></line>",
      kind, Percent(ratio), Percent(ratio), Escaped(title));
}

std::string BarRow(const CaseBar& item) {
  const double first = item.first->median_us, ratio = item.Ratio();
  const bool still = std::abs(ratio - 1) < kStill;
  const char* state = still ? "still" : ratio > 1 ? "worse" : "moved";
  std::string marks;
  for (const Point* peer : item.peers)
    marks += Mark("peer", peer->median_us / first,
                  peer->name + ": " + FormatMicroseconds(peer->median_us));
  if (item.floor != nullptr)
    marks += Mark("floor", item.floor->median_us / first,
                  "floor: " + FormatMicroseconds(item.floor->median_us) + ", " + item.floor->name);
  if (item.record != nullptr)
    marks += fmt::format(
        "<circle class=\"record\" cx=\"{:.2f}%\" cy=\"12\" r=\"3.5\"><title>record: "
        "{}</title></circle>",
        Percent(item.record->median_us / first),
        Escaped(FormatMicroseconds(item.record->median_us) + " at " +
                item.record->name.substr(0, 12)));
  const std::string alone =
      item.alone == nullptr
          ? ""
          : fmt::format(", main alone since: {}", FormatMicroseconds(item.alone->median_us));
  const std::string verdict = still       ? "not moved"
                              : ratio < 1 ? fmt::format("{:.2f}x faster", 1 / ratio)
                                          : fmt::format("{:.2f}x slower", ratio);
  return fmt::format(
      "<div class=\"case\"><span class=\"name\">{}</span><svg height=\"24\" role=\"img\" "
      "aria-label=\"{}\"><rect class=\"track\" x=\"0\" y=\"3\" width=\"{:.2f}%\" height=\"18\">"
      "<title>first: {}</title></rect><rect class=\"bar {}\" x=\"0\" y=\"3\" width=\"{:.2f}%\" "
      "height=\"18\"><title>newest: {}{}</title></rect>{}</svg><span class=\"says\"><b "
      "class=\"{}\">"
      "{}</b> <span class=\"dim\">{} → {}</span></span></div>\n",
      Breakable(item.name), Escaped(item.name + ": " + verdict), Percent(1),
      FormatMicroseconds(first), state, Percent(ratio), FormatMicroseconds(item.newest->median_us),
      alone, marks, state, verdict, FormatMicroseconds(first),
      FormatMicroseconds(item.newest->median_us));
}

// The distance of the chart's lines: a round number that gives at most six of them.
double TickOf(double range) {
  for (const double tick : {0.005, 0.01, 0.02, 0.05, 0.1, 0.2})
    if (range / tick <= 6) return tick;
  return 0.5 * std::ceil(range / 3);
}

struct Step {
  std::int64_t time_ms;
  double ratio;
  std::string title;
};

// One step a commit of main that moved a record: the geometric mean over cases of newest / first.
std::vector<Step> Steps(const DashboardInput& input) {
  const std::vector<CaseBar> bars = CasesOf(input.points);
  std::map<std::string, double> now;
  for (const CaseBar& bar : bars) now[bar.name] = bar.first->median_us;
  std::vector<Step> steps;
  std::string commit;
  for (const Point& point : input.points) {
    if (point.kind != "main" || point.median_us <= 0) continue;
    const bool starts = std::any_of(bars.begin(), bars.end(),
                                    [&](const CaseBar& bar) { return bar.first == &point; });
    if (!point.record && !starts) continue;
    now[point.case_name] = point.median_us;
    double sum = 0;
    for (const CaseBar& bar : bars) sum += std::log(now[bar.name] / bar.first->median_us);
    const double ratio = std::exp(sum / static_cast<double>(bars.size()));
    std::string why;
    for (const Entry& entry : input.entries)
      if (entry.key == point.entry_key) why = ": " + entry.mechanism + ". " + entry.summary;
    const Step step{
        point.time_ms, ratio,
        fmt::format("{} {}, geomean {:.3f} of the first{}", FormatUtc(point.time_ms).substr(0, 16),
                    point.name.substr(0, 12), ratio, why)};
    if (!steps.empty() && commit == point.name && steps.back().time_ms == point.time_ms)
      steps.back() = step;
    else
      steps.push_back(step);
    commit = point.name;
  }
  return steps;
}

}  // namespace

std::string Bars(const std::vector<CaseBar>& cases) {
  if (cases.empty()) return "<p class=\"dim\">Nothing was measured yet.</p>\n";
  std::string text =
      "<div class=\"key\"><span><svg><rect class=\"track\" width=\"18\" height=\"12\"/></svg>first "
      "time</span><span><svg><rect class=\"bar\" width=\"18\" height=\"12\"/></svg>newest, moved"
      "</span><span><svg><rect class=\"bar still\" width=\"18\" height=\"12\"/></svg>newest, not "
      "moved (within 0.3 %)</span><span><svg><circle class=\"record\" cx=\"9\" cy=\"6\" r=\"3.5\"/>"
      "</svg>record</span><span><svg><line class=\"peer\" x1=\"9\" x2=\"9\" y2=\"12\"/></svg>peer "
      "library</span><span><svg><line class=\"floor\" x1=\"9\" x2=\"9\" y2=\"12\"/></svg>floor"
      "</span></div>\n";
  for (const CaseBar& item : cases) text += BarRow(item);
  text +=
      "<p class=\"dim\">Each case on its own scale: its first time is the whole track. A mark "
      "beyond 1.3 times the first stands at the end; hover for its number.</p>\n";
  return text;
}

std::string Geomean(const DashboardInput& input) {
  const std::vector<Step> steps = Steps(input);
  if (steps.empty()) return "<p class=\"dim\">No commit of main was measured yet.</p>\n";
  double low = 1, high = 1;
  for (const Step& step : steps) {
    low = std::min(low, step.ratio);
    high = std::max(high, step.ratio);
  }
  const double margin = std::max(0.02, (high - low) * 0.08);
  low = std::max(0.0, low - margin);
  high += margin;
  const std::int64_t begin = steps.front().time_ms;
  const std::int64_t span =
      std::max<std::int64_t>(1, std::max(input.now_ms, steps.back().time_ms) - begin);
  // Percent across and pixels down, so that a narrow page keeps its letters and lines as they are.
  const auto x = [&](std::int64_t time_ms) {
    return 100.0 * static_cast<double>(time_ms - begin) / static_cast<double>(span);
  };
  const auto y = [&](double ratio) { return 10 + 200 * (high - ratio) / (high - low); };
  const auto line = [](const char* kind, double x1, double y1, double x2, double y2) {
    return fmt::format(
        "<line class=\"{}\" x1=\"{:.2f}%\" y1=\"{:.1f}\" x2=\"{:.2f}%\" y2=\"{:.1f}\"/>", kind, x1,
        y1, x2, y2);
  };
  std::string text =
      "<div class=\"chart\"><svg height=\"240\" role=\"img\" aria-label=\"geometric mean over "
      "time\">";
  const double tick = TickOf(high - low);
  for (double ratio = tick * std::ceil(low / tick); ratio <= high; ratio += tick)
    text += line("axis", 0, y(ratio), 100, y(ratio)) +
            fmt::format("<text x=\"-8\" y=\"{:.1f}\" text-anchor=\"end\">{:.3g}</text>",
                        y(ratio) + 4, ratio);
  std::string dots;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const double here = x(steps[i].time_ms), height = y(steps[i].ratio);
    if (i > 0) text += line("step", here, y(steps[i - 1].ratio), here, height);
    const double next = i + 1 < steps.size() ? x(steps[i + 1].time_ms) : 100;
    text += line("step", here, height, next, height);
    dots += fmt::format(
        "<circle class=\"dot\" cx=\"{:.2f}%\" cy=\"{:.1f}\" r=\"4.5\"><title>{}</title></circle>",
        here, height, Escaped(steps[i].title));
  }
  text += dots + fmt::format(
                     "<text x=\"0\" y=\"232\">{}</text><text x=\"100%\" y=\"232\" "
                     "text-anchor=\"end\">{}</text></svg></div>\n",
                     FormatUtc(begin).substr(0, 16), FormatUtc(begin + span).substr(0, 16));
  return text +
         "<p class=\"dim\">Geometric mean over all cases of newest / first time: lower is "
         "faster. A dot is a commit of main that "
         "set a first time or a record.</p>\n";
}

}  // namespace crucible::dashboard
