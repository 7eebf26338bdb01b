// style.cc: the page's style sheet: light and dark by the reader's choice, black on white in print.
#include "results_log/dashboard/parts.h"

namespace crucible::dashboard {

const char kStyle[] = R"css(
:root{color-scheme:light dark;--bg:#fbfbfa;--fg:#1d2126;--dim:#626a73;--line:#dfe2e5;--track:#e6e9ec;
--moved:#1f7a5c;--still:#c2570c;--worse:#b3261e;--peer:#5b4bc4;--floor:#0b6fb3;--card:#fff}
@media(prefers-color-scheme:dark){:root{--bg:#14171a;--fg:#e7eaed;--dim:#98a1ab;--line:#2d333a;
--track:#262b31;--moved:#46b38c;--still:#f08a3c;--worse:#f2716a;--peer:#a99bff;--floor:#5cb3ec;--card:#1a1e22}}
*{box-sizing:border-box}
body{margin:0 auto;max-width:1120px;padding:20px 24px 48px;background:var(--bg);color:var(--fg);
font:15px/1.45 system-ui,"Segoe UI","Liberation Sans",sans-serif}
h1{font-size:24px;margin:0}h2{font-size:17px;margin:30px 0 10px}
p{margin:4px 0}.dim{color:var(--dim)}.num{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}
.tiles{display:grid;grid-template-columns:repeat(auto-fit,minmax(180px,1fr));gap:10px;margin:16px 0}
.tile{background:var(--card);border:1px solid var(--line);border-radius:6px;padding:10px 14px}
.tile{overflow-wrap:anywhere}.tile b{display:block;font-size:21px;font-variant-numeric:tabular-nums;overflow-wrap:anywhere}
.still{color:var(--still)}.worse{color:var(--worse)}.moved{color:var(--moved)}
.case{display:grid;grid-template-columns:minmax(64px,190px) 1fr 270px;gap:0 14px;align-items:center;padding:5px 0}
.case .name{font-weight:600;overflow-wrap:anywhere}
.case .says{font-variant-numeric:tabular-nums}.case .says b{display:inline-block;min-width:74px}
svg{display:block;width:100%;overflow:visible}
.track{fill:var(--track)}.bar{fill:var(--moved)}.bar.still{fill:var(--still)}.bar.worse{fill:var(--worse)}
.peer{stroke:var(--peer);stroke-width:2.5}.floor{stroke:var(--floor);stroke-width:3;stroke-dasharray:3 2}
.record{fill:var(--fg)}.axis{stroke:var(--line)}.step{stroke:var(--moved);stroke-width:2.5;stroke-linecap:round}
.chart{padding:0 8px 0 48px}
.dot{fill:var(--moved)}text{fill:var(--dim);font-size:13px}
.key{display:flex;flex-wrap:wrap;gap:4px 18px;font-size:13px;color:var(--dim);margin:2px 0 8px}
.key svg{display:inline-block;width:18px;height:12px;margin-right:5px;vertical-align:-1px}
.wide{overflow-x:auto}table{border-collapse:collapse;width:100%;font-size:14px}
th{text-align:left;font-weight:600;color:var(--dim);font-size:13px}th.num{text-align:right}
th,td{padding:5px 12px 5px 0;border-bottom:1px solid var(--line);vertical-align:top}
td.long{min-width:220px;overflow-wrap:anywhere}td.short{white-space:nowrap}
@media(max-width:640px){body{padding:14px 12px}.case{grid-template-columns:1fr;padding:8px 0}
.case .says{font-size:14px}
.wide{overflow:visible}table,tbody,tr,td{display:block}tr.head,td:empty{display:none}
tr{border-bottom:1px solid var(--line);padding:6px 0}td,td.num,td.short{border:0;padding:1px 0 1px 116px;
min-width:0;text-align:left;white-space:normal;overflow-wrap:anywhere}
td::before{content:attr(data-of);float:left;margin-left:-116px;color:var(--dim)}}
@media print{:root{--bg:#fff;--fg:#000;--card:#fff}body{max-width:none;padding:0}
section,tr,.case{break-inside:avoid}.bar,.track,.tile{print-color-adjust:exact;-webkit-print-color-adjust:exact}}
)css";

}  // namespace crucible::dashboard
