/* SPDX-License-Identifier: Apache-2.0 */
/* report/svg.c - see svg.h. */
#include "report/svg.h"

#include <string.h>

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

void hr_svg_put_text(hr_writer *w, const char *text)
{
    while (*text) {
        const int plain = (int)strcspn(text, "<>&");
        hr_put(w, "%.*s", plain, text);
        if (text[plain]) hr_put(w, "&#%d;", text[plain]);
        text += plain + (text[plain] != 0);
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
