// Package flags has what all command lines share: a flag with one value may be given only once.
// Of several values, using the last one would be a guess.
package flags

import (
	"errors"
	"fmt"
	"reflect"

	"github.com/alecthomas/kong"
)

// Once is an option of parsers. It refuses flags that are given more than once, and names all of
// them. Flags with lists or maps may repeat, as they collect their values. Once acts after --help
// and the like, which end the program, and before missing required flags are reported.
func Once() kong.Option {
	return kong.WithBeforeResolve(func(parsed *kong.Context) error {
		var errs []error
		given := map[*kong.Flag]int{}
		var order []*kong.Flag
		for _, p := range parsed.Path {
			if p.Flag == nil || p.Resolved || collects(p.Flag.Target.Kind()) {
				continue
			}
			if given[p.Flag]++; given[p.Flag] == 2 {
				order = append(order, p.Flag)
			}
		}
		for _, f := range order {
			times := "twice"
			if n := given[f]; n > 2 {
				times = fmt.Sprintf("%d times", n)
			}
			errs = append(errs, fmt.Errorf("--%s is given %s", f.Name, times))
		}
		return errors.Join(errs...)
	})
}

// collects reports whether a flag of a kind collects all values that it is given.
func collects(kind reflect.Kind) bool { return kind == reflect.Slice || kind == reflect.Map }
