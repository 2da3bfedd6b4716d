// The beginning of a page: its style, for light and dark screens.
#pragma once

namespace ashlar::cli::html {

inline constexpr const char* kStyle = R"(
:root { --ink: #1b2027; --faint: #626c78; --line: #d9dee4; --paper: #ffffff; --panel: #f6f7f9;
  --edge: #8a94a0; --good: #1d7f4e; --bad: #c0392b; --link: #1f62ad; --ours: #2f74c0;
  --other: #a9b4c0; --roof: #c0562b;
  --simd: #2f74c0; --tensor-cores: #6a4fc3; --cuda-cores: #15807a; --per-output: #b77400;
  --reference: #b03a48; }
@media (prefers-color-scheme: dark) { :root { color-scheme: dark;
  --ink: #e3e7eb; --faint: #98a2ae; --line: #353d47; --paper: #13171c; --panel: #1b2027;
  --edge: #76818d; --good: #5cc08c; --bad: #ff7b6e; --link: #79b4f2; --ours: #5b9ce0;
  --other: #56616d; --roof: #e58d62;
  --simd: #5b9ce0; --tensor-cores: #a08bf0; --cuda-cores: #4dbdb4; --per-output: #e0a640;
  --reference: #f0808c; } }
* { box-sizing: border-box; }
body { font: 15px/1.5 system-ui, "Segoe UI", "DejaVu Sans", sans-serif; color: var(--ink);
  background: var(--paper); max-width: 72rem; margin: 0 auto; padding: 2rem 1.5rem 4rem; }
h1 { font-size: 1.6rem; line-height: 1.2; margin: 0 0 .3rem; }
h2 { font-size: 1.25rem; margin: 0 0 .35rem; }
h3 { font-size: .95rem; margin: 1.4rem 0 .4rem; }
p { margin: .25rem 0; } .faint { color: var(--faint); } a { color: var(--link); }
code, .mono { font-family: ui-monospace, "DejaVu Sans Mono", "Liberation Mono", monospace;
  font-size: .86em; }
section { margin-top: 2.5rem; padding-top: 1.6rem; border-top: 1px solid var(--line); }
.good { color: var(--good); font-weight: 600; } .bad { color: var(--bad); font-weight: 600; }
.facts { display: flex; flex-wrap: wrap; gap: .3rem .5rem; margin: 0; padding: 0;
  list-style: none; font-size: .85rem; }
.facts li { background: var(--panel); border: 1px solid var(--line); border-radius: 1rem;
  padding: .05rem .7rem; }
.scroll { overflow-x: auto; } table.summary { margin-top: 1rem; }
table { border-collapse: collapse; width: 100%; font-size: .86rem;
  font-variant-numeric: tabular-nums; }
th { text-align: right; font-weight: 600; color: var(--faint); white-space: nowrap;
  border-bottom: 1px solid var(--edge); padding: .3rem .6rem; }
td { text-align: right; padding: .4rem .6rem; border-bottom: 1px solid var(--line);
  vertical-align: top; white-space: nowrap; }
th.text, td.text { text-align: left; } td.wrap { white-space: normal; }
tr.main td { border-bottom: none; } tr.more td { padding-top: 0; text-align: left;
  white-space: normal; }
tr.main:target td { background: var(--panel); }
.badge { display: inline-block; min-width: 1.6em; padding: 0 .4em; border-radius: .35em;
  color: var(--paper); text-align: center; font-weight: 600; }
.share { display: inline-block; width: 5rem; height: .55rem; margin-right: .5rem;
  background: var(--line); border-radius: .3rem; overflow: hidden; }
.share i { display: block; height: 100%; background: var(--ours); }
.overview { display: flex; flex-wrap: wrap; gap: 1rem 2.5rem; align-items: flex-start;
  margin-top: 1rem; }
figure { margin: 0; max-width: 100%; }
figure.wide { max-width: none; width: calc(100vw - 3rem);
  margin-inline: calc(50% - 50vw + 1.5rem); }
 .overview .bars { flex: 1 1 24rem; min-width: 18rem; }
.bars table { table-layout: fixed; } .bars td { border: none; padding: .22rem .5rem; }
.bars td:first-child { width: 7.5rem; padding-left: 0; }
.bars td:last-child { width: 13.5rem; text-align: left; }
.bars i { display: block; height: 1rem; min-width: 2px; border-radius: 2px; margin-top: .2rem; }
.bars .plan { background: var(--ours); } .bars .rival { background: var(--other); }
.bars .roofline { background: var(--roof); }
.legend { display: flex; flex-wrap: wrap; gap: .2rem 1.1rem; font-size: .8rem;
  color: var(--faint); margin: .5rem 0 0; padding: 0; list-style: none; }
.legend i { display: inline-block; width: .95em; height: .95em; margin-right: .4em;
  vertical-align: -.12em; border-radius: 3px; border: 1.5px solid var(--edge); }
.legend .pill { border-radius: 1em; width: 1.5em; } .legend .dashed { border-style: dashed; }
.legend .strong { border-width: 2.5px; }
details { margin: .3rem 0; } summary { cursor: pointer; color: var(--faint); font-size: .86rem; }
details table { width: auto; margin: .3rem 0 .6rem 1rem; } details td { padding: .12rem .6rem; }
details ul { margin: .3rem 0 .6rem; padding-left: 2.2rem; font-size: .86rem; }
svg.graph { display: block; }
svg.graph text { font: 12px ui-monospace, "DejaVu Sans Mono", "Liberation Mono", monospace;
  fill: var(--ink); text-anchor: middle; }
svg.graph .small { font-size: 10.5px; fill: var(--faint); }
svg.graph .op rect { fill: var(--paper); stroke: var(--edge); }
svg.graph .tensor rect { fill: var(--panel); stroke: var(--edge); }
svg.graph .workspace rect { stroke-dasharray: 4 3; }
svg.graph .output rect { stroke-width: 2.5; }
svg.graph .edge { fill: none; stroke: var(--edge); stroke-width: 1.3; }
svg .arrowhead { fill: var(--edge); }
svg.graph .region .body { fill: var(--tint); fill-opacity: .1; stroke: var(--tint);
  stroke-width: 1.5; }
svg.graph .region .head { fill: var(--cover); }
svg.graph .region .title { fill: var(--tint); font-weight: 700; text-anchor: start; }
svg.graph .region .small { text-anchor: start; }
svg.graph .region .op .small { text-anchor: middle; }
svg.graph a { text-decoration: none; } svg.graph a:hover .title { text-decoration: underline; }
.simd { --tint: var(--simd); } .tensor-cores { --tint: var(--tensor-cores); }
.cuda-cores { --tint: var(--cuda-cores); } .per-output { --tint: var(--per-output); }
.reference { --tint: var(--reference); }
.simd, .tensor-cores, .cuda-cores, .per-output, .reference {
  --cover: color-mix(in srgb, var(--tint) 10%, var(--paper)); }
.badge, .legend .method { background: var(--tint); } .legend .method { border-color: var(--tint); }
)";

}  // namespace ashlar::cli::html
