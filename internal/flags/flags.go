// Package flags has what all command lines share: a flag that takes one value is given
// once, as that the last of several counts would be a guess.
package flags

import (
	"errors"
	"fmt"
	"reflect"

	"github.com/alecthomas/kong"
)

// Once is an option of parsers that refuses flags which are given more than once, all of
// them. Flags of lists and of maps are not, as they collect what they are given. It acts
// behind --help and its like, which end the program, and before required flags are missed.
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

// collects says that a flag of a kind keeps all that it is given.
func collects(kind reflect.Kind) bool { return kind == reflect.Slice || kind == reflect.Map }
