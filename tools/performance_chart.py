"""The chart of one device in docs/performance.md as SVG text; tools/performance_page.py calls it."""

import math
from xml.sax.saxutils import escape

# Geometry in pixels: names, the panel of speedups, the panel of roofline shares.
WIDTH, TOP, ROW, BOTTOM = 880, 84, 22, 34
NAMES, SPEED_LEFT, SPEED_RIGHT, SHARE_LEFT, SHARE_RIGHT = 182, 200, 500, 584, 824

# Colours carry no meaning alone: a bar left of 1x is slower, and every bar has its value written next to it.
STYLE = """
  text { font: 12px system-ui, "Segoe UI", Helvetica, Arial, sans-serif; fill: #24292f; }
  .title { font-size: 14px; font-weight: 600; }
  .axis, .note { fill: #57606a; font-size: 11px; }
  .page { fill: #ffffff; stroke: #d0d7de; }
  .value { paint-order: stroke; stroke: #ffffff; stroke-width: 4px; }
  .grid { stroke: #d8dee4; }
  .one { stroke: #57606a; stroke-width: 1.5; }
  .faster { fill: #2f6fb0; }
  .slower { fill: #c4681c; }
  .share { fill: #4f8a5b; }
  .worst { stroke: #24292f; stroke-width: 2; }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3; }
    .axis, .note { fill: #9aa4af; }
    .page { fill: #0d1117; stroke: #30363d; }
    .value { stroke: #0d1117; }
    .grid { stroke: #2a3138; }
    .one { stroke: #9aa4af; }
    .faster { fill: #5b9bd8; }
    .slower { fill: #e0924a; }
    .share { fill: #74b582; }
    .worst { stroke: #e6edf3; }
  }"""


def chart(title, peer, rows):
    """Rows: (suite, speedup or None, worst case's speedup or None, share of the roofline or None)."""
    height = TOP + ROW * len(rows) + BOTTOM
    speeds = [speed for _, speed, worst, _ in rows for speed in (speed, worst) if speed]
    low, high = min([0.5, *speeds]), max([2.0, *speeds])
    most = max([1.0, *(share for *_, share in rows if share)])

    def across(speed):
        part = (math.log(speed) - math.log(low)) / (math.log(high) - math.log(low))
        return SPEED_LEFT + part * (SPEED_RIGHT - SPEED_LEFT)

    def along(share):
        return SHARE_LEFT + share / most * (SHARE_RIGHT - SHARE_LEFT)
    yield (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" '
           f'role="img" aria-label="{escape(title)}">')
    yield f"<style>{STYLE}\n</style>"
    yield f'<rect class="page" x="0.5" y="0.5" width="{WIDTH - 1}" height="{height - 1}" rx="8"/>'
    yield from words(16, 26, title, "title")
    yield from words(SPEED_LEFT, 50, f"speedup over {peer}, geometric mean (log scale)", "axis")
    yield from words(SHARE_LEFT, 50, "share of the roofline", "axis")
    bottom = TOP + ROW * len(rows)
    for mark in (0.1, 0.2, 0.5, 1, 2, 5, 10):
        if low <= mark <= high:
            yield from line(across(mark), TOP - 6, across(mark), bottom, "one" if mark == 1 else "grid")
            yield from words(across(mark), TOP - 12, f"{mark:g}x", "axis", "middle")
    for mark in (0, 0.25, 0.5, 0.75, 1):
        yield from line(along(mark), TOP - 6, along(mark), bottom, "one" if mark == 1 else "grid")
        yield from words(along(mark), TOP - 12, f"{mark:.0%}", "axis", "middle")
    for i, (suite, speed, worst, share) in enumerate(rows):
        y = TOP + ROW * i
        yield from words(NAMES, y + 15, suite, "", "end")
        if speed:
            start, end = sorted((across(1), across(speed)))
            yield from bar(start, end, y, "faster" if speed >= 1 else "slower")
            if worst:
                yield from line(across(worst), y + 3, across(worst), y + ROW - 3, "worst")
            yield from words(max(across(speed), across(1)) + 5, y + 15, f"{speed:.2f}x", "value")
        else:
            yield from words(across(1) + 5, y + 15, "not measured", "note")
        if share:
            yield from bar(along(0), along(share), y, "share")
            yield from words(along(share) + 5, y + 15, f"{share:.0%}", "value")
        else:
            yield from words(along(0) + 5, y + 15, "not measured", "note")
    yield from words(SPEED_LEFT, height - 13, "Vertical tick: the worst case of the suite.", "note")
    yield "</svg>"


def words(x, y, text, kind="", anchor="start"):
    yield (f'<text x="{x:.1f}" y="{y:.1f}"' + (f' class="{kind}"' if kind else "") +
           (f' text-anchor="{anchor}"' if anchor != "start" else "") + f">{escape(text)}</text>")


def line(x0, y0, x1, y1, kind):
    yield f'<line class="{kind}" x1="{x0:.1f}" y1="{y0:.1f}" x2="{x1:.1f}" y2="{y1:.1f}"/>'


def bar(start, end, y, kind):
    yield (f'<rect class="{kind}" x="{start:.1f}" y="{y + 5:.1f}" width="{max(end - start, 1):.1f}" height="{ROW - 10}" '
           'rx="2"/>')
