package terminal_test

import (
	"fmt"
	"os"

	"github.com/riprap-go/riprap/cmd/riprap/internal/terminal"
)

func ExampleTable() {
	load := map[string][]float64{"tutorial": {1, 2, 4, 8, 8, 8}, "riprap": {1, 1, 2, 1, 1, 1}}
	table := terminal.Table{Header: []string{"policy", "answered", "load"}, Lefts: []int{2}}
	table.Add("tutorial", terminal.Percent(0.313), terminal.Spark(load["tutorial"], 8, 6))
	table.Add("riprap", terminal.Percent(1), terminal.Spark(load["riprap"], 8, 6))
	fmt.Print(table.Text(terminal.Look(os.Stdout)))
	// Output:
	// policy    answered  load
	// tutorial      31 %  ▁▂▄███
	// riprap       100 %  ▁▁▂▁▁▁
}

func ExampleBars() {
	strip := terminal.Strip{Bins: 12, Width: 6} // two to a column
	for _, line := range terminal.Bars(strip, []int{0, 1, 2, 3, 9, 2, 1, 5, 1, 0, 0, 0}, 9, 2) {
		fmt.Println("|" + line + "|")
	}
	// Output:
	// |  █▁  |
	// |▂▅██▂ |
}

func ExampleNewProgress() {
	games := []string{"outage", "brownout"}
	p := terminal.NewProgress(os.Stderr, "playing", len(games))
	for range games {
		// ... play it ...
		p.Done(1)
	}
	p.End()
	fmt.Println("played", len(games))
	// Output: played 2
}
