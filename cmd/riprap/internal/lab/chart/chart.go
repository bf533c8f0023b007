// Package chart draws the lab's figures as SVG files for documentation: a [Storm] over time, [Lines] of one figure
// against another, and [Bars]. It takes plain numbers and knows nothing of where they come from.
//
// A picture is made to be shown as an image, by Markdown's ![](file.svg) or an <img>. It brings its own background,
// follows the reader's light or dark theme, and is as wide as the column of a README.
//
// The same data gives the same bytes on every platform, so that a picture in a repository changes only when its data do.
// No data break a picture: what is no number, infinite or too large to be true (above 10^15) is left out, text is
// escaped and, where it does not fit, wrapped or cut.
package chart

import (
	"cmp"
	"encoding/xml"
	"io"
	"math"
	"strconv"
	"strings"
)

const (
	pictureWidth = 840
	pad          = 16 // around a picture

	titleSize = 15
	textSize  = 13
	tickSize  = 12

	titleLine = 20 // line heights
	textLine  = 17
	tickLine  = 18
)

// A canvas collects the elements of a picture. Coordinates are in pixels and written in tenths of one.
type canvas struct {
	body strings.Builder
}

// svg is the whole file: what was drawn in its frame. Title and description are for those who do not see the picture.
func (c *canvas) svg(height float64, title, description string) string {
	var b strings.Builder
	w, h := decimal(pictureWidth), decimal(height)
	b.WriteString(`<svg xmlns="http://www.w3.org/2000/svg" width="` + w + `" height="` + h + `" viewBox="0 0 ` + w + ` ` + h + `" role="img" aria-labelledby="title`)
	if description = tidy(description); description != "" {
		b.WriteString(" desc")
	}
	b.WriteString("\">\n<title id=\"title\">")
	escape(&b, cmp.Or(tidy(title), "Chart"))
	b.WriteString("</title>\n")
	if description != "" {
		b.WriteString(`<desc id="desc">`)
		escape(&b, description)
		b.WriteString("</desc>\n")
	}
	b.WriteString("<style>\n" + style() + "</style>\n")
	b.WriteString(`<rect class="paper" width="` + w + `" height="` + h + "\"/>\n")
	b.WriteString(c.body.String())
	b.WriteString("</svg>\n")
	return b.String()
}

func (c *canvas) rect(class string, x, y, width, height float64) {
	c.body.WriteString(`<rect class="` + class + `" x="` + decimal(x) + `" y="` + decimal(y) +
		`" width="` + decimal(max(width, 0)) + `" height="` + decimal(max(height, 0)) + "\"/>\n")
}

// line is straight; a polyline of two points or more.
func (c *canvas) line(class string, points ...point) {
	c.path(class, outline(points))
}

func (c *canvas) path(class, d string) {
	if d != "" {
		c.body.WriteString(`<path class="` + class + `" d="` + d + "\"/>\n")
	}
}

// text stands with the middle of its small letters at y. Anchor is start, middle or end.
func (c *canvas) text(class, anchor string, x, y float64, s string) {
	if s == "" {
		return
	}
	c.body.WriteString(`<text class="` + class + `"`)
	if anchor != "start" {
		c.body.WriteString(` text-anchor="` + anchor + `"`)
	}
	// Renderers disagree about dominant-baseline, so the shift is ours.
	c.body.WriteString(` x="` + decimal(x) + `" y="` + decimal(y+4.5) + `">`)
	escape(&c.body, s)
	c.body.WriteString("</text>\n")
}

// paragraph is text in lines from the top y; it returns where the last one ends.
func (c *canvas) paragraph(class string, x, y, lineHeight float64, lines []string) float64 {
	for _, s := range lines {
		c.text(class, "start", x, y+lineHeight/2, s)
		y += lineHeight
	}
	return y
}

// escape also replaces what XML cannot hold, such as control characters.
func escape(w io.Writer, s string) {
	_ = xml.EscapeText(w, []byte(s)) // both writers are strings.Builders, which do not fail
}

// tidy makes one line of a text.
func tidy(s string) string { return strings.Join(strings.Fields(s), " ") }

// tenths of a pixel, the resolution of every picture.
func tenths(v float64) int {
	return int(math.Round(float64(max(-1e6, min(v, 1e6)) * 10)))
}

func decimal(v float64) string { return string(appendTenths(nil, tenths(v))) }

func appendTenths(b []byte, n int) []byte {
	if n < 0 {
		b, n = append(b, '-'), -n
	}
	if n >= 10 || n == 0 {
		b = strconv.AppendInt(b, int64(n/10), 10)
	}
	if n%10 != 0 {
		b = append(b, '.', byte('0'+n%10))
	}
	return b
}

// usable tells whether v can be drawn. What is too large to be true would leave nothing else visible.
func usable(v float64) bool { return math.Abs(v) <= 1e15 }
