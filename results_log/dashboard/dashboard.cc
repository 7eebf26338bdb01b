#include "results_log/dashboard/dashboard.h"

#include <fmt/format.h>

#include <cctype>

#include "base/clock.h"
#include "results_log/dashboard/parts.h"

namespace crucible {
namespace dashboard {

std::string Escaped(std::string_view text) {
  std::string html;
  for (const char c : text) {
    switch (c) {
      case '&':
        html += "&amp;";
        break;
      case '<':
        html += "&lt;";
        break;
      case '>':
        html += "&gt;";
        break;
      case '"':
        html += "&quot;";
        break;
      case '\'':
        html += "&#39;";
        break;
      default:
        if (static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\t')
          html += "\xef\xbf\xbd";
        else
          html.push_back(c);
    }
  }
  return html;
}

std::string Breakable(std::string_view text) {
  const auto letter = [&](std::size_t at) {
    return at < text.size() && std::isalnum(static_cast<unsigned char>(text[at])) != 0;
  };
  std::string html;
  std::size_t from = 0;
  for (std::size_t at = 0; at + 1 < text.size(); ++at) {
    const char c = text[at];
    const bool digit = text[at + 1] >= '0' && text[at + 1] <= '9';
    const bool within_a_word = at > 0 && letter(at - 1) && letter(at + 1) && !digit;
    if (c != '_' && c != '/' && !((c == '-' || c == '.') && within_a_word)) continue;
    html += Escaped(text.substr(from, at + 1 - from)) + "<wbr>";
    from = at + 1;
  }
  return html + Escaped(text.substr(from));
}

std::vector<CaseBar> CasesOf(const std::vector<Point>& points) {
  std::vector<CaseBar> cases = BarsOf(points);
  std::erase_if(cases, [](const CaseBar& bar) { return bar.first == nullptr; });
  return cases;
}

}  // namespace dashboard

Result<DashboardInput> LoadDashboard(Store* store, const std::string& target) {
  DashboardInput input;
  input.target = target;
  input.now_ms = SystemClock().UnixMs();
  if (target.empty()) {
    CRUCIBLE_ASSIGN(const auto points, store->Points(""));
    if (!points.empty()) input.target = points.back().target;
  }
  CRUCIBLE_ASSIGN(input.campaigns, store->Campaigns());
  CRUCIBLE_ASSIGN(input.missions, store->Missions(""));
  if (input.target.empty() && !input.campaigns.empty()) input.target = input.campaigns[0].target;
  const auto foreign = [&](const auto& row) { return row.target != input.target; };
  std::erase_if(input.campaigns, foreign);
  std::erase_if(input.missions, foreign);
  EntryFilter filter;
  filter.target = input.target;
  CRUCIBLE_ASSIGN(input.entries, store->QueryEntries(filter));
  if (!input.target.empty()) {
    CRUCIBLE_ASSIGN(input.points, store->Points(input.target));
  }
  CRUCIBLE_ASSIGN(input.jobs, store->Jobs());
  return input;
}

std::string RenderDashboard(const DashboardInput& input) {
  using namespace dashboard;
  const auto cases = CasesOf(input.points);
  const std::string title = input.target.empty() ? "crucible" : "crucible: " + input.target;
  std::string page = fmt::format(
      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">{}\n<meta "
      "name=\"viewport\" "
      "content=\"width=device-width,initial-scale=1\">\n<title>{}</title>\n<style>{}</style></"
      "head>\n"
      "<body>\n<h1>{}</h1>\n<p class=\"dim\">As of {} UTC</p>\n",
      input.refresh_s > 0
          ? fmt::format("\n<meta http-equiv=\"refresh\" content=\"{}\">", input.refresh_s)
          : "",
      Escaped(title), kStyle, Escaped(title), FormatUtc(input.now_ms).substr(0, 16));
  page += Summary(input, cases);
  const auto section = [&](const char* name, const std::string& html) {
    page += fmt::format("<section><h2>{}</h2>\n{}</section>\n", name, html);
  };
  section("Time per case", Bars(cases));
  section("Geometric mean over time", Geomean(input));
  section("Missions", Missions(input));
  section("Rejections by mechanism", Rejections(input));
  section("Recent entries", Recent(input));
  section("Device queue", Queue(input));
  return page + "</body></html>\n";
}

}  // namespace crucible
