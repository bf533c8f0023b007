package chart

import "strings"

// A color of both themes. The classes for lines and text keep their contrast to the paper: 3 and 4.5 to 1.
type color struct{ class, property, light, dark string }

// The first tries are slate, retries amber, what was answered in time teal, and all else is ink. No color is alone: a label
// says the same, and lines differ by dash and marker too.
var palette = []color{
	{"paper", "fill", "#fbf9f5", "#0e1524"},
	{"band", "fill", "#e3dcec", "#343a5e"},
	{"hair", "stroke", "#e0dbd1", "#263043"},
	{"axis", "stroke", "#8b8f96", "#66718a"},
	{"limit", "stroke", "#1d2530", "#e8ebf1"},
	{"halo", "stroke", "#fbf9f5", "#0e1524"},
	{"ink", "fill", "#1d2530", "#e8ebf1"},
	{"quiet", "fill", "#5b6270", "#a0aabb"},
	{"fill-plain", "fill", "#7a818d", "#8790a1"},
	{"fill-first", "fill", "#98a7bb", "#5a6c86"},
	{"fill-retry", "fill", "#f0ae2e", "#d8942a"},
	{"line-plain", "stroke", "#1d2530", "#e8ebf1"},
	{"line-plain2", "stroke", "#646b78", "#98a2b4"},
	{"line-first", "stroke", "#5d708c", "#8fa2bd"},
	{"line-retry", "stroke", "#a86a00", "#e3a238"},
	{"line-good", "stroke", "#00756b", "#45d6c5"},
	{"text-first", "fill", "#4c5d78", "#a9b8cd"},
	{"text-retry", "fill", "#885500", "#f0b54d"},
	{"text-good", "fill", "#006f66", "#45d6c5"},
}

// style is written out without CSS variables, which renderers outside browsers do not know.
func style() string {
	var b strings.Builder
	b.WriteString(`text{font:13px system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,sans-serif;font-variant-numeric:tabular-nums}
.title{font-size:15px;font-weight:600}.tick{font-size:12px}
path{fill:none;stroke-linejoin:round;stroke-linecap:round}.hair,.axis{stroke-width:1}.halo{stroke-width:3.6}.curve{stroke-width:2}
.limit{stroke-width:1.2;stroke-dasharray:5 4;stroke-linecap:butt}.leader{stroke-width:1;stroke-dasharray:none}.thin{stroke-width:1.6}.whisker{stroke-width:1.5}
.marker{stroke-width:1.5}
.dash1{stroke-dasharray:7 5}.dash2{stroke-dasharray:1 5}.dash3{stroke-dasharray:11 5 1 5}
`)
	rules(&b, func(c color) string { return c.light })
	b.WriteString("\n@media (prefers-color-scheme:dark){")
	rules(&b, func(c color) string { return c.dark })
	b.WriteString("}\n")
	return b.String()
}

func rules(b *strings.Builder, theme func(color) string) {
	for _, c := range palette {
		b.WriteString("." + c.class + "{" + c.property + ":" + theme(c) + "}")
		// A marker is filled with the color of its line.
		if shade, ok := strings.CutPrefix(c.class, "line-plain"); ok {
			b.WriteString(".solid-plain" + shade + "{fill:" + theme(c) + "}")
		}
	}
}
