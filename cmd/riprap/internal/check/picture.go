package check

import (
	"cmp"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/riprap-go/riprap"
	"github.com/riprap-go/riprap/chain"
	"github.com/riprap-go/riprap/cmd/riprap/internal/terminal"
)

// mostHops is how many lines of the picture are drawn.
const mostHops = 60

// A row is a hop as it is drawn.
type row struct {
	branch  string // before the service's name
	below   string // before what stands in the next line, as far as the next row
	name    string
	cells   [4]string // as in heads
	retried bool
	marks   string // the numbers of the findings here
}

var heads = [...]string{"limit", "attempts", "total", "left"}

// picture draws the chain: each service below the one that calls it, and what is left of the time there. It is a table
// where that fits, and two lines for each hop where it does not.
func (r *report) picture(b *strings.Builder, on terminal.Screen) {
	rows := r.rows()
	if len(rows) == 0 {
		return
	}
	if text := table(rows, on.Palette); widest(table(rows, false)) <= on.Width {
		b.WriteString(text)
	} else {
		for _, row := range rows {
			row.stack(b, on)
		}
	}
	b.WriteByte('\n')
	note := "left: the time for a request when all that comes before it took as long as it may."
	if most := r.most(); most.Calls > 1 {
		note += fmt.Sprintf(" If all attempts fail, one request at the top becomes %s at %s.", count(most.Calls, "call", "calls"), most.Service)
	}
	if strings.Contains(b.String(), again) {
		note += " " + strings.TrimSpace(again) + ": what it calls stands above."
	}
	if n := len(r.hops) - mostHops; n > 0 {
		note += fmt.Sprintf(" Not drawn: %s, which --json lists.", counted(n, "more hop", "more hops"))
	}
	lines(b, on, "", note, on.Palette.Quiet)
}

// again marks a hop whose further calls are not drawn.
const again = " ↑"

// most is the hop at which the most calls arrive.
func (r *report) most() (most chain.Hop) {
	for _, h := range r.hops {
		if h.Calls > most.Calls {
			most = h
		}
	}
	return most
}

// rows are the first mostHops hops.
func (r *report) rows() []row {
	services := map[string]*chain.Service{}
	for i := range r.file.Chain.Services {
		s := &r.file.Chain.Services[i]
		services[s.Name] = s
	}
	hops := r.hops[:min(mostHops, len(r.hops))]
	rows := make([]row, len(hops))
	var more []bool // at each depth: another one comes below
	for i := len(r.hops) - 1; i >= 0; i-- {
		h := r.hops[i]
		for len(more) <= h.Depth {
			more = append(more, false)
		}
		leads := h.Depth+1 < len(more) && more[h.Depth+1]
		more = more[:h.Depth+1]
		if i < len(rows) {
			rows[i] = draw(h, more, leads)
			r.fill(&rows[i], h, services)
		}
		more[h.Depth] = true
	}
	return rows
}

// draw makes the branches of a hop. Where they would become too wide, the outer ones are left out.
func draw(h chain.Hop, more []bool, leads bool) (drawn row) {
	const deepest = 12
	from := 1
	if h.Depth > deepest {
		from = h.Depth - deepest + 2
		drawn.branch, drawn.below = "…  ", "…  "
	}
	for depth := from; depth <= h.Depth; depth++ {
		switch through := more[depth]; {
		case depth < h.Depth && through:
			drawn.branch, drawn.below = drawn.branch+"│  ", drawn.below+"│  "
		case depth < h.Depth:
			drawn.branch, drawn.below = drawn.branch+"   ", drawn.below+"   "
		case through:
			drawn.branch, drawn.below = drawn.branch+"├─ ", drawn.below+"│  "
		default:
			drawn.branch, drawn.below = drawn.branch+"└─ ", drawn.below+"   "
		}
	}
	if leads {
		drawn.below += "│  "
	} else {
		drawn.below += "   "
	}
	return drawn
}

// fill writes the figures of a hop.
func (r *report) fill(drawn *row, h chain.Hop, services map[string]*chain.Service) {
	drawn.name = h.Service
	if route := r.file.Route(h); route != "" {
		drawn.name += ", " + route
	}
	if h.Again {
		drawn.name += again
	}
	s, known := services[h.Service]
	switch {
	case !known:
		drawn.cells[0] = "unknown"
	default:
		drawn.cells[0] = length(s.Limit)
	}
	if h.Call >= 0 && services[h.From] != nil && h.Call < len(services[h.From].Calls) {
		c := &services[h.From].Calls[h.Call]
		drawn.cells[1], drawn.cells[2] = attempts(&c.Policy), "none"
		if total := c.Total(); total != math.MaxInt64 {
			drawn.cells[2] = length(total)
		}
		drawn.retried = c.Policy.MaxAttempts != 1
	}
	drawn.cells[3] = left(h.Left)
	var marks []string
	for i, f := range r.findings[:min(mostFindings, len(r.findings))] {
		here := f.Service == h.From && f.Call == h.Call && h.Call >= 0
		if f.Call < 0 && f.Service == h.Service && !h.Again {
			here = true
		}
		if here {
			marks = append(marks, fmt.Sprint(i+1))
		}
	}
	if len(marks) > 0 {
		drawn.marks = "← " + strings.Join(marks, " ")
	}
}

// attempts is how many there are, and how long each may take.
func attempts(p *riprap.Policy) string {
	n := fmt.Sprint(cmp.Or(p.MaxAttempts, 4))
	if p.MaxAttempts < 0 {
		n = "any"
	}
	if p.AttemptTimeout <= 0 {
		return n
	}
	return n + " × " + length(p.AttemptTimeout)
}

// length is a bound, as people say it.
func length(d time.Duration) string {
	if d <= 0 {
		return "none"
	}
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

func left(d time.Duration) string {
	switch {
	case d == math.MaxInt64:
		return "no end"
	case d <= 0:
		return "nothing"
	case d < time.Millisecond:
		return length(d)
	default:
		return length(d.Truncate(time.Millisecond))
	}
}

// count is how many calls there are, which may be more than can be counted.
func count(n int, one, several string) string {
	if n == math.MaxInt {
		return "endlessly many " + several
	}
	return counted(n, one, several)
}

func table(rows []row, p terminal.Palette) string {
	t := terminal.Table{Header: append([]string{"service"}, heads[:]...), Lefts: []int{len(heads) + 1}}
	for _, r := range rows {
		cells := []string{r.branch + r.name}
		cells = append(cells, r.painted(p)...)
		if r.marks != "" {
			cells = append(cells, p.Bad(r.marks))
		}
		t.Add(cells...)
	}
	return t.Text(terminal.Screen{Width: math.MaxInt, Palette: p})
}

// painted are the cells in their colors.
func (r *row) painted(p terminal.Palette) []string {
	cells := r.cells
	if r.retried {
		cells[1] = p.Retries(cells[1])
	}
	if cells[3] == "nothing" {
		cells[3] = p.Bad(cells[3])
	}
	return cells[:]
}

func widest(text string) (n int) {
	for line := range strings.Lines(text) {
		n = max(n, terminal.Columns(strings.TrimSuffix(line, "\n")))
	}
	return n
}

// stack writes a row as lines: the service, and its figures in words below it.
func (r *row) stack(b *strings.Builder, on terminal.Screen) {
	const least = 24 // columns for words
	for terminal.Columns(r.below) > on.Width-least {
		r.branch, r.below = string([]rune(r.branch)[3:]), string([]rune(r.below)[3:])
	}
	room := on.Width - terminal.Columns(r.branch)
	if r.marks != "" {
		room -= 1 + terminal.Columns(r.marks)
	}
	line := r.branch + cut(r.name, room)
	if r.marks != "" {
		line += " " + on.Palette.Bad(r.marks)
	}
	fmt.Fprintln(b, line)
	var words []string
	for i, cell := range r.painted(on.Palette) {
		if cell != "" {
			words = append(words, heads[i]+" "+cell)
		}
	}
	for _, line := range terminal.Wrap(strings.Join(words, ", "), on.Width-terminal.Columns(r.below)) {
		fmt.Fprintln(b, strings.TrimRight(r.below+line, " "))
	}
}

// cut shortens a name to so many columns, at least one.
func cut(name string, columns int) string {
	if terminal.Columns(name) <= max(columns, 1) {
		return name
	}
	short := []rune(name)
	for len(short) > 0 && terminal.Columns(string(short)) >= max(columns, 1) {
		short = short[:len(short)-1]
	}
	return string(short) + "…"
}
