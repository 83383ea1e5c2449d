#include "measure/report/style.h"

#include <fmt/format.h>

namespace viaduct::measure {
namespace {

// Colours of lines have a contrast of at least 3:1 against the page, and texts 4.5:1, in both
// schemes. Colour is never the only sign: lines also differ in dashes and marks, verdicts in words
// and symbols.
constexpr std::string_view kStyle = R"CSS(
:root {
  color-scheme: light dark;
  --page: #ffffff; --text: #1b1f24; --soft: #57606a; --edge: #d0d7de; --grid: #e6e9ed; --stripe: #f6f8fa;
  --link: #0550ae; --bad: #b3001b; --bad-page: #fff0f0; --warn: #7a4b00; --warn-page: #fff8e5;
  --good: #116329; --good-page: #effaf1; --level: #1b1f24;
  --c0: #0a5fb4; --c1: #b3480a; --c2: #14804a; --c3: #9332a8; --c4: #d6408a; --c5: #0e8296;
  --c6: #8a6a00; --c7: #727b85; --c8: #5b4bd6; --c9: #6b3a1e; --c10: #5f8a00; --c11: #1e2f7d;
}
@media (prefers-color-scheme: dark) {
  :root {
    --page: #0f141a; --text: #e6edf3; --soft: #9aa7b4; --edge: #39424e; --grid: #242c36; --stripe: #171e26;
    --link: #79b8ff; --bad: #ff8f8f; --bad-page: #34161a; --warn: #f0c060; --warn-page: #2c2412;
    --good: #7ee29a; --good-page: #12281a; --level: #e6edf3;
    --c0: #6cb6ff; --c1: #ffa057; --c2: #57d18d; --c3: #dd97f0; --c4: #ff86c0; --c5: #4fd6e0;
    --c6: #e0bf4f; --c7: #aab2ba; --c8: #a39bff; --c9: #d3a184; --c10: #b5dd5a; --c11: #5f86ff;
  }
}
* { box-sizing: border-box; }
body {
  margin: 0; background: var(--page); color: var(--text);
  font: 16px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif;
}
main, header, footer { max-width: 72rem; margin: 0 auto; padding: 0 1rem; }
header { padding-top: 1.5rem; }
h1 { font-size: 1.7rem; line-height: 1.2; margin: 0 0 .25rem; }
h2 { font-size: 1.25rem; line-height: 1.3; margin: 2.25rem 0 .5rem; }
h3 { font-size: 1rem; margin: 1rem 0 .25rem; overflow-wrap: anywhere; }
p, ul { margin: .5rem 0; }
ul { padding-left: 1.25rem; }
li { overflow-wrap: anywhere; }
a { color: var(--link); }
.sub, figcaption, footer { color: var(--soft); font-size: .875rem; }
footer { padding-top: 2rem; padding-bottom: 2rem; }
nav ul { display: flex; flex-wrap: wrap; gap: .25rem 1.25rem; list-style: none; padding: 0; }
:focus-visible { outline: 3px solid var(--link); outline-offset: 2px; }
.box { border: 1px solid currentColor; border-left-width: 6px; border-radius: 6px; padding: .6rem .9rem; margin: .75rem 0; }
.box h2 { margin: 0 0 .25rem; }
.box.bad { color: var(--bad); background: var(--bad-page); }
.box li { color: var(--text); margin-bottom: .4rem; }
.box.warn { color: var(--warn); background: var(--warn-page); }
.box.good { color: var(--good); background: var(--good-page); }
strong.bad { color: var(--bad); white-space: nowrap; }
span.good { color: var(--good); white-space: nowrap; }
.unsure { color: var(--warn); white-space: nowrap; }
.command { margin: .25rem 0; }
code { font: .85rem/1.4 ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace; overflow-wrap: anywhere; }
.outcome { border: 1px solid var(--edge); border-radius: 6px; padding: .25rem .9rem .75rem; margin: 1rem 0; }
.barname { margin: .6rem 0 .25rem; font-weight: 600; font-size: .875rem; }
.bar { display: flex; gap: 3px; flex-wrap: wrap; print-color-adjust: exact; -webkit-print-color-adjust: exact; }
.bar span { flex-basis: max-content; padding: .2rem .6rem; border-radius: 4px; border: 1px solid currentColor; font-size: .875rem; font-weight: 600; white-space: nowrap; }
.bar .good { color: var(--good); background: var(--good-page); }
.bar .warn { color: var(--warn); background: var(--warn-page); border-style: dashed; }
.bar .bad { color: var(--bad); background: var(--bad-page); border-width: 2px; }
.bar .plain { color: var(--text); background: var(--stripe); border-color: var(--soft); }
.rates { list-style: none; padding: 0; margin: 0; font-size: .875rem; }
.rates li { display: grid; grid-template-columns: minmax(6rem, 12rem) 1fr minmax(10rem, 26rem); gap: 0 .75rem; align-items: center; padding: .1rem 0; }
.small { margin: .25rem 0; color: var(--soft); font-size: .8rem; }
td.note { white-space: normal; color: var(--soft); }
td.note div { position: sticky; left: .6rem; max-width: min(100%, calc(min(100vw, 74rem) - 4rem)); }
.track { display: block; height: .8rem; background: var(--stripe); border-radius: 3px; print-color-adjust: exact; -webkit-print-color-adjust: exact; }
.track span { display: block; height: 100%; min-width: 3px; background: currentColor; border-radius: 3px; }
figure { margin: .5rem 0 1rem; }
.plot { position: relative; }
.plot.narrow { display: none; }
.chart { display: block; width: 100%; height: auto; }
.stops label { position: absolute; pointer-events: none; }
.stops input { position: absolute; appearance: none; margin: -9px; width: 18px; height: 18px; border-radius: 50%; }
.stops span { position: absolute; bottom: 12px; width: max-content; max-width: 17rem; padding: .2rem .5rem; clip-path: inset(50%);
  background: var(--page); color: var(--text); border: 1px solid var(--link); border-radius: 4px; font-size: .85rem; z-index: 1; }
.stops .left span { right: 12px; }
.stops .right span { left: 12px; }
.stops .low span { bottom: auto; top: 12px; }
.stops input:focus-visible + span { clip-path: none; }
.chart text { fill: var(--text); font-size: 13px; font-family: inherit; }
.narrow text { font-size: 11.5px; }
.chart .tick text { fill: var(--soft); }
.grid { stroke: var(--grid); stroke-width: 1; fill: none; }
.line { fill: none; stroke: currentColor; stroke-width: 2; stroke-linejoin: round; }
.whisker { fill: none; stroke: currentColor; stroke-width: 1.25; opacity: .75; }
.mark { fill: currentColor; stroke: var(--page); stroke-width: 1; }
.level { fill: none; stroke: var(--level); stroke-width: 1.5; }
.chart .levelname { fill: var(--level); font-size: 12px; font-weight: 600; }
.chart .halo { paint-order: stroke; stroke: var(--page); stroke-width: 4px; stroke-linejoin: round; fill: var(--text); font-size: 12px; }
.chart .badname { fill: var(--bad); font-weight: 700; }
.chart .bad { stroke: var(--bad); stroke-width: 3; fill: none; }
.series:hover .line { stroke-width: 3.5; }
.c0 { color: var(--c0); } .c1 { color: var(--c1); } .c2 { color: var(--c2); } .c3 { color: var(--c3); }
.c4 { color: var(--c4); } .c5 { color: var(--c5); } .c6 { color: var(--c6); } .c7 { color: var(--c7); }
.c8 { color: var(--c8); } .c9 { color: var(--c9); } .c10 { color: var(--c10); } .c11 { color: var(--c11); }
.legend { display: flex; flex-wrap: wrap; gap: .15rem 1.25rem; list-style: none; padding: 0; margin: .25rem 0; font-size: .9rem; }
.swatch { vertical-align: -2px; }
.scroll { overflow-x: auto; margin: .5rem 0 1rem; border: 1px solid var(--edge); border-radius: 6px; }
table { border-collapse: collapse; width: 100%; font-size: .85rem; font-variant-numeric: tabular-nums; }
caption { text-align: left; padding: .4rem .6rem; color: var(--soft); }
caption span { display: block; position: sticky; left: .6rem; max-width: min(100%, calc(min(100vw, 74rem) - 4rem)); }
th, td { padding: .3rem .6rem; text-align: left; vertical-align: top; border-top: 1px solid var(--edge); }
thead th { vertical-align: bottom; background: var(--stripe); }
tbody th { font-weight: 600; white-space: nowrap; }
tbody tr:nth-child(even) { background: var(--stripe); }
td.n, th.n { text-align: right; }
td { white-space: nowrap; }
.path { white-space: normal; min-width: 15rem; }
.proof { white-space: normal; min-width: 40rem; }
.words { white-space: normal; min-width: 9rem; max-width: 34rem; overflow-wrap: anywhere; }
.columns { columns: 2 20rem; }
.columns .scroll { overflow: visible; border: 0; }
.columns td { width: 60%; }
small { color: var(--soft); font-size: .8em; }
details summary { cursor: pointer; font-weight: 600; font-size: 1.25rem; margin: 2.25rem 0 .5rem; }
details summary h2 { display: inline; margin: 0; }
@media (max-width: 640px) {
  body { font-size: 15px; }
  .plot.wide { display: none; }
  .plot.narrow { display: block; }
  .stops span { max-width: 11rem; }
  .rates li { grid-template-columns: 1fr; padding: .3rem 0; }
  .path { min-width: 6rem; }
  tbody th { white-space: normal; min-width: 4rem; }
  th, td { padding: .3rem .4rem; }
}
@media print {
  :root {
    color-scheme: light;
    --page: #ffffff; --text: #000000; --soft: #444444; --edge: #bbbbbb; --grid: #dddddd; --stripe: #f4f4f4;
    --bad: #b3001b; --bad-page: #ffffff; --warn: #7a4b00; --warn-page: #ffffff; --good: #116329;
    --good-page: #ffffff; --level: #000000;
    --c0: #0a5fb4; --c1: #b3480a; --c2: #14804a; --c3: #9332a8; --c4: #d6408a; --c5: #0e8296;
    --c6: #8a6a00; --c7: #727b85; --c8: #5b4bd6; --c9: #6b3a1e; --c10: #5f8a00; --c11: #1e2f7d;
  }
  @page { margin: 12mm; }
  body { font-size: 10pt; }
  main, header, footer { max-width: none; padding: 0; }
  nav { display: none; }
  figure, tr, .box { break-inside: avoid; }
  h2, summary { break-after: avoid; }
  thead { display: table-header-group; }
  .plot.wide { display: block; }
  .plot.narrow, .stops { display: none; }
  .scroll { overflow: visible; border: 0; }
  table { font-size: 7.5pt; }
  th, td { padding: .15rem .3rem; }
  td { white-space: normal; }
  .path, .proof, .limit { min-width: 8rem; }
  caption span { max-width: none; }
  .words { max-width: none; }
  .path, .proof { overflow-wrap: anywhere; }
  .words { min-width: 5rem; }
  tbody th { white-space: nowrap; }
  caption, thead { break-after: avoid; }
}
)CSS";

// The browser must fetch nothing and run no script, even if a result file contains HTML.
constexpr auto kHead =
    "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
    "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src "
    "'unsafe-inline'; img-src data:\">\n"
    "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
    "<link rel=\"icon\" "
    "href=\"data:,\">\n<title>{}</title>\n<style>{}{}</style>\n</head>\n<body>\n";

}  // namespace

std::string pageHead(const std::string& title, std::string_view more_style) {
  return fmt::format(kHead, title, kStyle, more_style);
}

}  // namespace viaduct::measure
