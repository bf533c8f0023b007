package chart

import (
	"encoding/binary"
	"encoding/xml"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "write the golden files")

// An element of a picture that was read back, with the text in it.
type element struct {
	name, class, text string
	attr              map[string]string
}

func (e element) number(t *testing.T, name string) float64 {
	t.Helper()
	v, err := strconv.ParseFloat(e.attr[name], 64)
	if err != nil {
		t.Fatalf("%s %q of %s: %v", name, e.attr[name], e.name, err)
	}
	return v
}

// read parses a picture and checks what holds for every one: it is well-formed, has a title that its root names, and no
// coordinate that is no number.
func read(t *testing.T, svg string) []element {
	t.Helper()
	var all []element
	var open []int
	decoder := xml.NewDecoder(strings.NewReader(svg))
	for {
		token, err := decoder.Token()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatalf("the picture is no XML: %v\n%s", err, svg)
		}
		switch token := token.(type) {
		case xml.StartElement:
			e := element{name: token.Name.Local, attr: map[string]string{}}
			for _, a := range token.Attr {
				e.attr[a.Name.Local] = a.Value
				if strings.Contains(a.Value, "NaN") || strings.Contains(a.Value, "Inf") {
					t.Errorf("got %s=%q in %s, want a number", a.Name.Local, a.Value, e.name)
				}
			}
			e.class = e.attr["class"]
			open = append(open, len(all))
			all = append(all, e)
		case xml.EndElement:
			open = open[:len(open)-1]
		case xml.CharData:
			if len(open) > 0 {
				all[open[len(open)-1]].text += string(token)
			}
		}
	}
	if len(all) < 2 || all[0].name != "svg" || all[0].attr["role"] != "img" || all[1].name != "title" || all[1].text == "" ||
		!strings.HasPrefix(all[0].attr["aria-labelledby"], all[1].attr["id"]) {
		t.Fatalf("got no svg with the role of an image and a title:\n%s", svg)
	}
	return all
}

// find returns the elements with a class among their classes.
func find(all []element, class string) []element {
	return slices.DeleteFunc(slices.Clone(all), func(e element) bool { return !slices.Contains(strings.Fields(e.class), class) })
}

func texts(all []element) []string {
	var list []string
	for _, e := range all {
		if e.name == "text" {
			list = append(list, e.text)
		}
	}
	return list
}

// aStorm is a small one: a fault of two steps after which one policy's retries stay and the other's go.
func aStorm() *Storm {
	first := slices.Repeat([]float64{280}, 12)
	return &Storm{
		Title: "Two policies after an outage", Description: "With the fixed wait the retries stay, with the budget they go.",
		Step: 10 * time.Second, Capacity: 300,
		Faults: []Span{{20 * time.Second, 40 * time.Second, "outage"}},
		Panels: []Panel{
			{Title: "fixed wait", Caption: "never recovers", First: first,
				Retries: []float64{0, 0, 300, 840, 840, 840, 840, 840, 840, 840, 840, 840},
				Goodput: []float64{280, 280, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}},
			{Title: "riprap", Caption: "recovers 20 s after the outage", First: first,
				Retries: []float64{0, 0, 50, 20, 10, 0, 0, 0, 0, 0, 0, 0},
				Goodput: []float64{280, 280, 0, 0, 200, 280, 280, 280, 280, 280, 280, 280}},
		},
	}
}

func someLines() *Lines {
	return &Lines{
		Title: "Calls against clients",
		X:     Axis{Label: "clients"}, Y: Axis{Label: "calls"},
		Series: []Series{
			{Name: "no backoff", Points: []Point{{1, 1}, {10, 60}, {50, 1300}, {100, 5100}}},
			{Name: "full jitter", Points: []Point{{1, 1}, {10, 40}, {50, 300}, {100, 800}}},
			{Name: "budget", Points: []Point{{1, 1}, {10, 30}, {50, math.NaN()}, {80, 500}, {100, 790}}},
		},
	}
}

func someBars() *Bars {
	return &Bars{
		Title: "Calls at the last service", Label: "calls for each click",
		Bars: []Bar{
			{Label: "three retries a layer", Value: 64},
			{Label: "at the edge alone", Value: 27, Low: 24, High: 31},
			{Label: "riprap", Value: 1.1},
			{Label: "never done", Value: math.NaN()},
		},
	}
}

func TestPicturesStayAsTheyAre(t *testing.T) {
	for name, got := range map[string]string{"storm.svg": aStorm().SVG(), "lines.svg": someLines().SVG(), "bars.svg": someBars().SVG()} {
		read(t, got)
		path := filepath.Join("testdata", name)
		if *update {
			if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if got != strings.ReplaceAll(string(want), "\r\n", "\n") {
			t.Errorf("%s differs from the golden file; look at it and run the test with -update. Got\n%s", path, got)
		}
	}
}

func TestTextIsEscaped(t *testing.T) {
	const hostile = "</text><script>alert(1)</script> & \"'\x00\x1b\xff"
	const want = "</text><script>alert(1)</script> & \"'\ufffd\ufffd\ufffd"
	s := &Storm{Title: hostile, Description: hostile, Faults: []Span{{0, time.Second, hostile}},
		Panels: []Panel{{Title: hostile, Caption: hostile, First: []float64{1, 2}}}}
	l := &Lines{Title: hostile, Description: hostile, X: Axis{hostile, hostile}, Y: Axis{hostile, hostile},
		Series: []Series{{Name: hostile, Points: []Point{{1, 1}, {2, 2}}}}}
	b := &Bars{Title: hostile, Description: hostile, Label: hostile, Unit: hostile,
		Bars: []Bar{{Label: hostile, Value: 1}}}
	for kind, svg := range map[string]string{"storm": s.SVG(), "lines": l.SVG(), "bars": b.SVG()} {
		all := read(t, svg)
		for _, e := range all {
			if e.name == "script" {
				t.Errorf("%s: got a script element from a text", kind)
			}
		}
		if all[1].text != want || all[2].text != want {
			t.Errorf("%s: got title %q and description %q, want %q", kind, all[1].text, all[2].text, want)
		}
	}
}

func TestNothingToDrawIsSaid(t *testing.T) {
	nan := []float64{math.NaN()}
	for name, svg := range map[string]string{
		"no panels":        (&Storm{}).SVG(),
		"an empty panel":   (&Storm{Panels: []Panel{{Title: "riprap"}}}).SVG(),
		"no lines":         (&Lines{}).SVG(),
		"lines of nothing": (&Lines{Series: []Series{{Name: "a", Points: []Point{{nan[0], 1}}}}}).SVG(),
		"no bars":          (&Bars{}).SVG(),
	} {
		if got := texts(read(t, svg)); !slices.Contains(got, "no data") {
			t.Errorf("%s: got the texts %q, want one that says no data", name, got)
		}
	}
}

func TestAPictureHasThreeSizesOfText(t *testing.T) {
	for _, svg := range []string{aStorm().SVG(), someLines().SVG(), someBars().SVG()} {
		sizes := map[string]bool{}
		for _, rest := range strings.Split(svg, "font")[1:] {
			if n := strings.Index(rest, "px"); n >= 0 && n < 10 {
				sizes[rest[n-2:n]] = true
			}
		}
		if len(sizes) != 3 || !sizes["15"] || !sizes["13"] || !sizes["12"] {
			t.Errorf("got the sizes %v, want 15, 13 and 12", sizes)
		}
	}
}

func TestPicturesStayWithinTheirWidth(t *testing.T) {
	for _, panels := range []int{1, 2, 3, 4} {
		s, l, b := aStorm(), someLines(), someBars()
		s.Panels = append(s.Panels, s.Panels...)[:panels]
		for kind, svg := range map[string]string{"storm": s.SVG(), "lines": l.SVG(), "bars": b.SVG()} {
			all := read(t, svg)
			if got := all[0].number(t, "width"); got != pictureWidth {
				t.Errorf("%s: got a width of %v, want %v", kind, got, pictureWidth)
			}
			for _, e := range all {
				if e.name != "text" {
					continue
				}
				x, size := e.number(t, "x"), textWidth(e.text, textSize)
				switch e.attr["text-anchor"] {
				case "end":
					x -= size
				case "middle":
					x -= size / 2
				}
				if x < 0 || x+size > pictureWidth+1 {
					t.Errorf("%s, %d panels: got %q from %v to %v", kind, panels, e.text, x, x+size)
				}
			}
		}
	}
}

// The rule of WCAG 2, level AA: 4.5 to 1 for text, 3 to 1 for what carries meaning without being text.
func TestColorsContrastWithThePaper(t *testing.T) {
	paper := palette[0]
	for _, c := range palette {
		want := 0.0
		switch {
		case c.class == "ink" || c.class == "quiet" || strings.HasPrefix(c.class, "text-"):
			want = 4.5
		case c.class == "limit" || strings.HasPrefix(c.class, "line-"):
			want = 3
		}
		if got := contrast(c.light, paper.light); got < want {
			t.Errorf("%s in the light theme: got a contrast of %.2f, want %v", c.class, got, want)
		}
		if got := contrast(c.dark, paper.dark); got < want {
			t.Errorf("%s in the dark theme: got a contrast of %.2f, want %v", c.class, got, want)
		}
	}
}

func contrast(a, b string) float64 {
	x, y := luminance(a), luminance(b)
	return (max(x, y) + 0.05) / (min(x, y) + 0.05)
}

func luminance(color string) float64 {
	var r, g, b uint8
	fmt.Sscanf(color, "#%02x%02x%02x", &r, &g, &b)
	linear := func(v uint8) float64 {
		if c := float64(v) / 255; c > 0.04045 {
			return math.Pow((c+0.055)/1.055, 2.4)
		}
		return float64(v) / 255 / 12.92
	}
	return 0.2126*linear(r) + 0.7152*linear(g) + 0.0722*linear(b)
}

// numbers reads floats from the fuzzer's bytes, NaN and infinities among them.
func numbers(data []byte) []float64 {
	var list []float64
	for ; len(data) >= 8; data = data[8:] {
		list = append(list, math.Float64frombits(binary.LittleEndian.Uint64(data)))
	}
	return list
}

func bytesOf(list ...float64) []byte {
	var data []byte
	for _, v := range list {
		data = binary.LittleEndian.AppendUint64(data, math.Float64bits(v))
	}
	return data
}

var extremes = bytesOf(math.NaN(), math.Inf(1), math.Inf(-1), -1, 0, 5e-324, 1e-12, 1e15, -1e15, math.MaxFloat64, 1e15-1)

func FuzzStorm(f *testing.F) {
	f.Add("fixed wait", int64(time.Second), int64(0), int64(time.Minute), 300.0, bytesOf(280, 280, 280, 0, 840, 840), 2)
	f.Add("<", int64(-1), int64(math.MinInt64), int64(math.MaxInt64), math.NaN(), extremes, 3)
	f.Add("", int64(math.MaxInt64), int64(5), int64(4), math.Inf(1), extremes, 1)
	f.Fuzz(func(t *testing.T, text string, step, from, to int64, capacity float64, data []byte, panels int) {
		s := &Storm{Title: text, Step: time.Duration(step), Capacity: capacity}
		span := Span{time.Duration(from), time.Duration(to), text}
		s.Faults = []Span{span, span, {0, time.Duration(to), ""}}
		list := numbers(data)
		for i := range max(0, min(panels, 6)) {
			third := len(list) / 3
			s.Panels = append(s.Panels, Panel{text, text, list[:third], list[third : 2*third], list[2*third:]})
			list = list[min(i, len(list)):]
		}
		if svg := s.SVG(); len(read(t, svg)) == 0 || svg != s.SVG() {
			t.Error("got two pictures of the same storm")
		}
	})
}

func FuzzLines(f *testing.F) {
	f.Add("full jitter", "%", bytesOf(1, 1, 10, 60, 50, 1300), 2)
	f.Add("\x00", " s", extremes, 40)
	f.Add("", "", bytesOf(1e15, 1, 1e15-1, 2), 1)
	f.Fuzz(func(t *testing.T, text, unit string, data []byte, series int) {
		l := &Lines{Title: text, X: Axis{text, unit}, Y: Axis{text, unit}}
		list := numbers(data)
		for range max(0, min(series, 50)) {
			s := Series{Name: text}
			for k := 0; k+1 < len(list); k += 2 {
				s.Points = append(s.Points, Point{list[k], list[k+1]})
			}
			l.Series = append(l.Series, s)
			list = list[min(1, len(list)):]
		}
		if svg := l.SVG(); len(read(t, svg)) == 0 || svg != l.SVG() {
			t.Error("got two pictures of the same lines")
		}
	})
}

func FuzzBars(f *testing.F) {
	f.Add("riprap", "%", bytesOf(64, 60, 70, 27, 0, 0))
	f.Add("&", "/s", extremes)
	f.Fuzz(func(t *testing.T, text, unit string, data []byte) {
		b := &Bars{Title: text, Label: text, Unit: unit}
		list := numbers(data)
		for k := 0; k+2 < len(list); k++ {
			b.Bars = append(b.Bars, Bar{text, list[k], list[k+1], list[k+2]})
		}
		if svg := b.SVG(); len(read(t, svg)) == 0 || svg != b.SVG() {
			t.Error("got two pictures of the same bars")
		}
	})
}
