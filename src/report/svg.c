/* SPDX-License-Identifier: Apache-2.0 */
/* report/svg.c - see svg.h. */
#define _GNU_SOURCE
#include "report/svg.h"

#include <string.h>

#include "base/json.h"

const char hr_svg_first[] = "<svg xmlns=\"http://www.w3.org/2000/svg\"";

void hr_svg_begin(hr_writer *w, int64_t width, int64_t height, const char *title)
{
    const long long right = width, bottom = height;
    hr_put(w,
           "%s viewBox=\"0 0 %lld %lld\" width=\"%lld\" height=\"%lld\" role=\"img\">\n"
           "<title>%s</title>\n",
           hr_svg_first, right, bottom, right, bottom, title);
    hr_put(w, "<style>text{font:12px sans-serif;fill:#444}.grid{stroke:#e4e4e4;fill:none}"
              ".line{stroke:#1f6aa5;stroke-width:2;fill:none}circle{fill:#1f6aa5}"
              ".beyond{fill:#fff;stroke:#1f6aa5;stroke-width:2}</style>\n");
    hr_put(w, "<rect width=\"%lld\" height=\"%lld\" fill=\"#fff\"/>\n", right, bottom);
}

void hr_svg_end(hr_writer *w)
{
    hr_put(w, "</svg>\n");
}

int64_t hr_svg_plain(const char *text, int32_t *code)
{
    int64_t plain = 0;
    while (text[plain] && !strchr("<>&\"'", text[plain])) {
        const int64_t more = hr_json_character(text + plain, (int64_t)strnlen(text + plain, 4));
        if (more == 0) break;
        plain += more;
    }
    const unsigned char next = (unsigned char)text[plain];
    *code = next < 0x80 ? next : 0xfffd;
    return plain;
}

void hr_svg_put_text(hr_writer *w, const char *text)
{
    while (*text) {
        int32_t code;
        const int64_t plain = hr_svg_plain(text, &code);
        hr_put(w, "%.*s", (int)plain, text);
        if (code) hr_put(w, "&#%d;", code);
        text += plain + (code != 0);
    }
}

void hr_svg_put_label(hr_writer *w, double x, double y, const char *anchor, const char *text)
{
    hr_put(w, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">", x, y, anchor);
    hr_svg_put_text(w, text);
    hr_put(w, "</text>\n");
}

void hr_svg_put_row(hr_writer *w, double left, double right, double y, const char *label)
{
    hr_put(w, "<path class=\"grid\" d=\"M%.1f %.1fH%.1f\"/>\n", left, y, right);
    hr_svg_put_label(w, left - 8, y + 4, "end", label);
}
