package enum

import (
	"encoding"
	"fmt"
	"slices"
	"strings"
)

// Names maps the constants 0, 1, … of the integer type T to names.
type Names[T ~int] struct {
	// Type is the name of the type T, such as "Task". What is the noun for a constant of T in
	// messages, such as "task".
	Type, What string
	// Names[i] is the name of constant i.
	Names []string
}

// String returns the name of v, or a text such as "Task(7)" if v is not a constant.
func (n Names[T]) String(v T) string {
	if !n.has(v) {
		return fmt.Sprintf("%s(%d)", n.Type, int(v))
	}
	return n.Names[v]
}

// Text returns the name of v, or an error if v is not a constant.
func (n Names[T]) Text(v T) ([]byte, error) {
	if !n.has(v) {
		return nil, fmt.Errorf("%s is not one of the package's constants", n.String(v))
	}
	return []byte(n.Names[v]), nil
}

// Parse sets *v to the constant whose name is text. If there is no such constant, Parse leaves
// *v unchanged and returns an error that lists the names.
func (n Names[T]) Parse(v *T, text []byte) error {
	i := slices.Index(n.Names, string(text))
	if i < 0 {
		return fmt.Errorf("unknown %s %q: want one of %s", n.What, text, strings.Join(n.Names, ", "))
	}
	*v = T(i)
	return nil
}

func (n Names[T]) has(v T) bool { return v >= 0 && int(v) < len(n.Names) }

// Check returns one error for each element of values that is not a constant of its type.
func Check(values ...encoding.TextMarshaler) (errs []error) {
	for _, v := range values {
		if _, err := v.MarshalText(); err != nil {
			errs = append(errs, err)
		}
	}
	return errs
}
