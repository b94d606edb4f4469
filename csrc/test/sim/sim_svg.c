/*
 * The picture of one run: leases, keys, and faults.
 *
 * SPDX-License-Identifier: MIT
 */
#include <string.h>

#include "sim_trace_marks.h"

#define SIM_SVG_LEFT 90.0
#define SIM_SVG_WIDTH 900.0
#define SIM_SVG_ROW 44.0
#define SIM_SVG_LANE 15.0
#define SIM_SVG_TOP 46.0

typedef struct sim_svg {
  FILE *file;
  const sim *s;
  uint64_t from_us, until_us;
} sim_svg;

static double sim_svg_x(const sim_svg *svg, uint64_t at_us) {
  uint64_t clipped_us = at_us < svg->from_us    ? svg->from_us
                        : at_us > svg->until_us ? svg->until_us
                                                : at_us;
  return SIM_SVG_LEFT + SIM_SVG_WIDTH * (double)(clipped_us - svg->from_us) /
                            (double)(svg->until_us - svg->from_us);
}

/* Clients above, nodes below. */
static double sim_svg_y(const sim_svg *svg, unsigned row) {
  unsigned line = row >= SIM_NODES_MAX ? row - SIM_NODES_MAX : svg->s->config.clients + row;
  return SIM_SVG_TOP + SIM_SVG_ROW * line;
}

static void sim_svg_escaped(FILE *file, const char *text) {
  for (; *text != '\0'; text++) {
    if (*text == '<' || *text == '&' || *text == '>') {
      (void)fprintf(file, "&#%d;", *text);
    } else {
      (void)fputc(*text, file);
    }
  }
}

static void sim_svg_bar(const sim_svg *svg, const sim_mark *mark) {
  double x = sim_svg_x(svg, mark->from_us);
  double width = sim_svg_x(svg, mark->until_us) - x;
  double y = sim_svg_y(svg, mark->row) + 4 + SIM_SVG_LANE * mark->lane;
  unsigned owner = mark->token < svg->s->token_count ? svg->s->tokens[mark->token].client : 9;
  unsigned hue = owner == 9 ? 0 : owner * 90 + 20 + mark->resource * 30;
  (void)fprintf(
      svg->file,
      "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.0f\" fill=\"hsl(%u,%u%%,%u%%)\" "
      "stroke=\"#333\" stroke-width=\"0.4\"><title>%s: token %u, client %u, resource %u, "
      "%.3f to %.3f ms</title></rect>\n",
      x, y, width < 0.8 ? 0.8 : width, SIM_SVG_LANE - 2, hue, owner == 9 ? 0 : 65u,
      mark->kind == SIM_MARK_LEASE ? 55u : 78u, mark->kind == SIM_MARK_LEASE ? "lease" : "key",
      mark->token, owner, mark->resource, (double)mark->from_us / 1000.0,
      (double)mark->until_us / 1000.0);
}

static void sim_svg_fault(const sim_svg *svg, const sim_mark *mark) {
  double x = sim_svg_x(svg, mark->from_us);
  double width = sim_svg_x(svg, mark->until_us) - x;
  double y = sim_svg_y(svg, mark->row);
  (void)fprintf(svg->file,
                "<g><rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"5\" fill=\"#c00\" "
                "fill-opacity=\"0.5\"/><path d=\"M%.1f %.1fl-3 -6h6z\" fill=\"#c00\"/><title>",
                x, y + SIM_SVG_ROW - 8, width < 1 ? 1 : width, x, y + SIM_SVG_ROW - 3);
  sim_svg_escaped(svg->file, mark->text);
  (void)fprintf(svg->file, ", %.3f to %.3f ms</title></g>\n", (double)mark->from_us / 1000.0,
                (double)mark->until_us / 1000.0);
  if (width > 7.0 * (double)strlen(mark->text)) {
    (void)fprintf(svg->file, "<text x=\"%.1f\" y=\"%.1f\" class=\"fault\">", x,
                  y + SIM_SVG_ROW - 12);
    sim_svg_escaped(svg->file, mark->text);
    (void)fputs("</text>\n", svg->file);
  }
}

static const char sim_svg_style[] =
    "<style>\n  text { fill: #1f2328; } .fault { fill: #cf222e; } .back { fill: #fff; } .time { fill: #59636e; }\n"
    "  .client { fill: #f1f1f1; } .node { fill: #e9f0f9; } .grid { stroke: #bbb; stroke-width: 0.5; }\n"
    "  @media (prefers-color-scheme: dark) {\n"
    "    text { fill: #e6edf3; } .fault { fill: #f85149; } .back { fill: #0d1117; } .time { fill: #9198a1; }\n"
    "    .client { fill: #22272e; } .node { fill: #1a2330; } .grid { stroke: #444c56; }\n  }\n"
    "</style>\n";

static void sim_svg_frame(const sim_svg *svg) {
  const sim *s = svg->s;
  unsigned rows = s->config.clients + s->config.nodes;
  double height = SIM_SVG_TOP + SIM_SVG_ROW * rows + 24;
  double width = SIM_SVG_LEFT + SIM_SVG_WIDTH + 60;
  (void)fprintf(
      svg->file,
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.0f %.0f\" width=\"%.0f\" "
      "height=\"%.0f\" font-family=\"sans-serif\" font-size=\"12\">\n%s"
      "<rect class=\"back\" width=\"100%%\" height=\"100%%\"/>\n"
      "<text x=\"8\" y=\"18\" font-size=\"13\">seed %llu: ",
      width, height, width, height, sim_svg_style, (ull)s->seed);
  sim_svg_escaped(svg->file, s->failed ? s->checker : "no violation");
  (void)fputs(s->failed ? ": " : "", svg->file);
  sim_svg_escaped(svg->file, s->failure);
  (void)fputs(
      "</text>\n<text class=\"time\" x=\"8\" y=\"35\">dark: the lease of a client; light: its key on a "
      "node; red: a fault</text>\n",
      svg->file);
  for (unsigned i = 0; i < rows; i++) {
    bool client = i < s->config.clients;
    double y = SIM_SVG_TOP + SIM_SVG_ROW * i;
    (void)fprintf(svg->file,
                  "<rect x=\"%.0f\" y=\"%.0f\" width=\"%.0f\" height=\"%.0f\" class=\"%s\"/>"
                  "<text x=\"8\" y=\"%.0f\">%s %u</text>\n",
                  SIM_SVG_LEFT, y, SIM_SVG_WIDTH, SIM_SVG_ROW - 2, client ? "client" : "node",
                  y + 20, client ? "client" : "node", client ? i : i - s->config.clients);
  }
  for (unsigned i = 0; i <= 10; i++) {
    uint64_t at_us = svg->from_us + (svg->until_us - svg->from_us) / 10 * i;
    double x = sim_svg_x(svg, at_us);
    (void)fprintf(
        svg->file,
        "<path class=\"grid\" d=\"M%.1f %.0fV%.0f\"/><text class=\"time\" x=\"%.1f\" y=\"%.0f\">"
        "%.0f ms</text>\n",
        x, SIM_SVG_TOP - 6, height - 20, x + 2, height - 8, (double)at_us / 1000.0);
  }
}

bool sim_trace_svg(const sim *s, const char *path, uint64_t from_us, uint64_t until_us) {
  sim_svg svg = {fopen(path, "w"), s, from_us, until_us > from_us ? until_us : s->now_us + 1};
  if (svg.file == NULL) {
    return false;
  }
  /* The last stretch is readable and shows the violation; the whole run would not be. */
  uint64_t stretch_us = 12 * s->config.ttl_max_us;
  bool asked = until_us > from_us;
  if (s->failed && !asked && s->now_us > stretch_us) {
    svg.from_us = s->now_us - stretch_us;
  }
  if (s->failed && !asked) {
    svg.until_us += s->config.ttl_max_us / 2;
  }
  sim_svg_frame(&svg);
  for (size_t i = 0; i < s->trace->count; i++) {
    const sim_mark *mark = &s->trace->marks[i];
    if (mark->until_us < svg.from_us || mark->from_us > svg.until_us) {
      continue;
    }
    if (mark->kind == SIM_MARK_FAULT) {
      sim_svg_fault(&svg, mark);
    } else {
      sim_svg_bar(&svg, mark);
    }
  }
  if (s->failed) {
    double x = sim_svg_x(&svg, s->now_us);
    (void)fprintf(svg.file, "<path d=\"M%.1f 24V%.0f\" stroke=\"#c00\" stroke-width=\"1.5\"/>\n", x,
                  SIM_SVG_TOP + SIM_SVG_ROW * (s->config.clients + s->config.nodes));
  }
  (void)fputs("</svg>\n", svg.file);
  return fclose(svg.file) == 0;
}
