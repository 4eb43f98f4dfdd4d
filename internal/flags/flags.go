// Package flags has the parser option that all command lines share. It refuses a flag with a
// single value that is given more than once, because using the last value would be a guess.
package flags

import (
	"errors"
	"fmt"
	"reflect"

	"github.com/alecthomas/kong"
)

// Once returns a parser option that refuses flags that are given more than once. The error names
// all of them. Flags whose values are slices or maps may be repeated, because they collect their
// values. Once acts after flags such as --help, which end the program, and before missing required
// flags are reported.
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

// collects reports whether a flag whose value is of the given kind collects all its values.
func collects(kind reflect.Kind) bool { return kind == reflect.Slice || kind == reflect.Map }
