package shared

import (
	"bytes"
	"fmt"
	"math"
	"reflect"
	"unsafe"
)

// loss is the first difference between an object and what its codec has restored from the object's
// bytes. at is its place in the object, such as ".Weights[3]", and is "" if the object is one value.
type loss struct{ at, before, after string }

// String says what was lost and where.
func (l *loss) String() string {
	if l.at == "" {
		return fmt.Sprintf("it has %s in place of %s", l.after, l.before)
	}
	return fmt.Sprintf("%s has %s in place of %s", l.at, l.after, l.before)
}

// within returns l as seen from the object that has the value of l at a place.
func (l *loss) within(place string) *loss {
	if l != nil {
		l.at = place + l.at
	}
	return l
}

// brief returns a value for messages. Strings are quoted and clipped.
func brief(v reflect.Value) string {
	if v.Kind() == reflect.String {
		return fmt.Sprintf("%.40q", v.String())
	}
	return fmt.Sprint(v)
}

// firstLoss returns the first difference between an object and the object that was restored from its
// bytes, or nil. It compares plain data: numbers, of which floating-point numbers by their bits, strings,
// bools, and slices, maps, arrays, pointers, interfaces and exported fields of structs that contain such.
// A nil slice or map equals an empty one. Functions, channels, unexported fields and fields with the
// tag `msgpack:"-"` are not compared, as a type may keep there what it can make again.
func firstLoss[T any](before, after T) *loss {
	c := comparison{seen: make(map[comparedPair]bool)}
	return c.values(reflect.ValueOf(&before).Elem(), reflect.ValueOf(&after).Elem())
}

// comparison remembers which values it has compared, so that it ends for objects that point back to
// themselves.
type comparison struct{ seen map[comparedPair]bool }

// comparedPair identifies two pointers, slices or maps that are compared.
type comparedPair struct {
	typ           reflect.Type
	before, after uintptr
	length        int // of slices and maps
}

// enter reports whether two pointers, slices or maps have yet to be compared.
func (c *comparison) enter(before, after reflect.Value, length int) bool {
	pair := comparedPair{before.Type(), before.Pointer(), after.Pointer(), length}
	known := pair.before == pair.after || c.seen[pair]
	c.seen[pair] = true
	return !known
}

func (c *comparison) values(before, after reflect.Value) *loss {
	switch before.Kind() {
	case reflect.Slice, reflect.Array:
		return c.lists(before, after)
	case reflect.Map:
		return c.maps(before, after)
	case reflect.Pointer:
		if before.IsNil() || after.IsNil() {
			return whether(before.IsNil(), after.IsNil())
		}
		if !c.enter(before, after, 0) {
			return nil
		}
		return c.values(before.Elem(), after.Elem())
	case reflect.Interface:
		switch {
		case before.IsNil() || after.IsNil():
			return whether(before.IsNil(), after.IsNil())
		case before.Elem().Type() != after.Elem().Type():
			return &loss{before: "a value of type " + before.Elem().Type().String(), after: "one of type " + after.Elem().Type().String()}
		}
		return c.values(before.Elem(), after.Elem())
	case reflect.Struct:
		return c.structs(before, after)
	}
	return scalars(before, after)
}

// whether returns the difference between two values of which one or both are nil.
func whether(before, after bool) *loss {
	name := map[bool]string{true: "nil", false: "a value"}
	if before == after {
		return nil
	}
	return &loss{before: name[before], after: name[after]}
}

// scalars compares two values that contain no others. Those that are not data have no difference.
func scalars(before, after reflect.Value) *loss {
	same := true
	switch kind := before.Kind(); {
	case kind == reflect.Bool:
		same = before.Bool() == after.Bool()
	case kind == reflect.String:
		same = before.String() == after.String()
	case before.CanInt():
		same = before.Int() == after.Int()
	case before.CanUint():
		same = before.Uint() == after.Uint()
	case before.CanFloat():
		same = math.Float64bits(before.Float()) == math.Float64bits(after.Float())
	case before.CanComplex():
		x, y := before.Complex(), after.Complex()
		same = math.Float64bits(real(x)) == math.Float64bits(real(y)) && math.Float64bits(imag(x)) == math.Float64bits(imag(y))
	}
	if same {
		return nil
	}
	return &loss{before: brief(before), after: brief(after)}
}

// lists compares two slices or arrays.
func (c *comparison) lists(before, after reflect.Value) *loss {
	n := before.Len()
	switch {
	case n != after.Len():
		return &loss{before: lengthOf(n), after: lengthOf(after.Len())}
	case n == 0:
		return nil
	case before.Kind() == reflect.Slice && isNumber(before.Type().Elem()):
		if bytes.Equal(memoryOf(before), memoryOf(after)) {
			return nil
		}
	case before.Kind() == reflect.Slice && !c.enter(before, after, n):
		return nil
	}
	for i := range n {
		if l := c.values(before.Index(i), after.Index(i)); l != nil {
			return l.within(fmt.Sprintf("[%d]", i))
		}
	}
	return nil
}

func lengthOf(n int) string { return fmt.Sprintf("length %d", n) }

func isNumber(t reflect.Type) bool { return t.Kind() >= reflect.Bool && t.Kind() <= reflect.Complex128 }

// memoryOf returns the memory of a slice of numbers. It is much faster to compare than the numbers one by one.
func memoryOf(v reflect.Value) []byte {
	return unsafe.Slice((*byte)(v.UnsafePointer()), v.Len()*int(v.Type().Elem().Size()))
}

// maps compares two maps. If their keys are not plain data, it compares only how many entries they have.
// Keys that are not equal to themselves, such as NaN, cannot be found, so their entries only count.
func (c *comparison) maps(before, after reflect.Value) *loss {
	switch {
	case before.Len() != after.Len():
		return &loss{before: lengthOf(before.Len()), after: lengthOf(after.Len())}
	case before.Len() == 0 || !isPlainKey(before.Type().Key()) || !c.enter(before, after, before.Len()):
		return nil
	}
	for entries := before.MapRange(); entries.Next(); {
		key := entries.Key()
		if !key.Equal(key) {
			continue
		}
		var l *loss
		if found := after.MapIndex(key); found.IsValid() {
			l = c.values(entries.Value(), found)
		} else {
			l = &loss{before: "an entry", after: "none"}
		}
		if l != nil {
			return l.within("[" + brief(key) + "]")
		}
	}
	return nil
}

// isPlainKey reports whether keys of a map are found by nothing but plain data.
func isPlainKey(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Array:
		return isPlainKey(t.Elem())
	case reflect.Struct:
		for i := range t.NumField() {
			if f := t.Field(i); !f.IsExported() || !isPlainKey(f.Type) {
				return false
			}
		}
		return true
	}
	return t.Kind() == reflect.String || isNumber(t)
}

// structs compares the exported fields of two structs, also those of embedded structs.
func (c *comparison) structs(before, after reflect.Value) *loss {
	t := before.Type()
	for i := range t.NumField() {
		f := t.Field(i)
		if isLeftOut(f) || !f.IsExported() && !embedsStruct(f) {
			continue
		}
		if l := c.values(before.Field(i), after.Field(i)); l != nil {
			return l.within("." + f.Name)
		}
	}
	return nil
}

// embedsStruct reports whether f embeds a struct, or a pointer to one.
func embedsStruct(f reflect.StructField) bool {
	t := f.Type
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return f.Anonymous && t.Kind() == reflect.Struct
}
