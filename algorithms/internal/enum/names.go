package enum

import (
	"encoding"
	"fmt"
	"slices"
	"strings"
)

// Names are the names of the constants of a type, which count from 0.
type Names[T ~int] struct {
	// Type is the name of the type, such as "Task". What is the word for one of its
	// constants in messages, such as "task".
	Type, What string
	// Names are the names of the constants, in their order.
	Names []string
}

// String returns the name of a constant, or text such as "Task(7)" where v is not one.
func (n Names[T]) String(v T) string {
	if !n.has(v) {
		return fmt.Sprintf("%s(%d)", n.Type, int(v))
	}
	return n.Names[v]
}

// Text returns the name of a constant. Any other value is an error.
func (n Names[T]) Text(v T) ([]byte, error) {
	if !n.has(v) {
		return nil, fmt.Errorf("%s is not one of the package's constants", n.String(v))
	}
	return []byte(n.Names[v]), nil
}

// Parse sets v to the constant of a name. An unknown name leaves v as it is and is an error
// that lists the names.
func (n Names[T]) Parse(v *T, text []byte) error {
	i := slices.Index(n.Names, string(text))
	if i < 0 {
		return fmt.Errorf("unknown %s %q: want one of %s", n.What, text, strings.Join(n.Names, ", "))
	}
	*v = T(i)
	return nil
}

func (n Names[T]) has(v T) bool { return v >= 0 && int(v) < len(n.Names) }

// Check returns the errors about values that are not constants of their types.
func Check(values ...encoding.TextMarshaler) (errs []error) {
	for _, v := range values {
		if _, err := v.MarshalText(); err != nil {
			errs = append(errs, err)
		}
	}
	return errs
}
