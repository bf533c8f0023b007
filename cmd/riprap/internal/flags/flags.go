// Package flags parses the arguments of a subcommand: flags of package flag, wherever they stand.
package flags

import (
	"errors"
	"flag"
	"fmt"
	"strings"

	"github.com/riprap-go/riprap/internal/suggest"
)

// Parse parses all flags of args and returns what is none. Behind -- nothing is a flag. The error of a flag that does not exist
// names the one that was meant; -h is flag.ErrHelp.
func Parse(f *flag.FlagSet, args []string) (rest []string, err error) {
	for {
		if err := f.Parse(args); err != nil {
			if errors.Is(err, flag.ErrHelp) {
				return nil, err
			}
			return nil, Near(f, args, err)
		}
		if f.NArg() == 0 {
			return rest, nil
		}
		if done := len(args) - f.NArg(); done > 0 && args[done-1] == "--" {
			return append(rest, f.Args()...), nil
		}
		rest, args = append(rest, f.Arg(0)), f.Args()[1:]
	}
}

// Near adds to the error with which f stopped parsing args the flag that was meant, if there is one like it.
func Near(f *flag.FlagSet, args []string, err error) error {
	typed := args[len(args)-f.NArg()-1]
	dashes := typed[:len(typed)-len(strings.TrimLeft(typed, "-"))]
	typed, _, _ = strings.Cut(strings.TrimLeft(typed, "-"), "=")
	if f.Lookup(typed) != nil {
		return err
	}
	var names []string
	f.VisitAll(func(f *flag.Flag) { names = append(names, f.Name) })
	if like := suggest.Near(typed, names); like != "" {
		return fmt.Errorf("%w, did you mean %s%s?", err, dashes, like)
	}
	return err
}
