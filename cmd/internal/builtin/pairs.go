package builtin

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/alecthomas/kong"
)

// pairs is the value of a flag that maps names to numbers or words, such as age=1;debt=-1. The
// flag may be given several times. A name that is given twice is an error, since it is not
// clear which value is meant. The value follows the last =, because names may contain =, such
// as the names of encoded text.
type pairs[V int | float64 | string] map[string]V

// Decode implements kong.MapperValue.
func (p *pairs[V]) Decode(ctx *kong.DecodeContext) error {
	var text string
	if err := ctx.Scan.PopValueInto("pairs", &text); err != nil {
		return err
	}
	if *p == nil {
		*p = pairs[V]{}
	}
	for _, pair := range kong.SplitEscaped(text, ';') {
		at := strings.LastIndexByte(pair, '=')
		if at < 0 {
			what := "number"
			if _, word := any(*p).(pairs[string]); word {
				what = "type"
			}
			return fmt.Errorf("want a name, = and a %s, but got %q", what, pair)
		}
		name, number := pair[:at], pair[at+1:]
		if _, twice := (*p)[name]; twice {
			return fmt.Errorf("%q occurs twice", name)
		}
		v, err := parsed[V](number)
		if err != nil {
			return fmt.Errorf("%q: %w", name, err)
		}
		(*p)[name] = v
	}
	return nil
}

func parsed[V int | float64 | string](text string) (v V, err error) {
	what := "number"
	switch at := any(&v).(type) {
	case *int:
		what = "whole number"
		*at, err = strconv.Atoi(text)
	case *float64:
		*at, err = strconv.ParseFloat(text, 64)
	case *string:
		*at = text
	}
	if err != nil {
		return v, fmt.Errorf("want a %s, but got %q", what, text)
	}
	return v, nil
}
