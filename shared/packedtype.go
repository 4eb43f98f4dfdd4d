package shared

import (
	"encoding"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/vmihailenco/msgpack/v5"
)

// isLeftOut reports whether the tag of a field says that the field is not stored.
func isLeftOut(f reflect.StructField) bool {
	name, _, _ := strings.Cut(f.Tag.Get("msgpack"), ",")
	return name == "-"
}

// usable returns an error if objects of the codec's type contain structs with fields that would be
// lost, because they are unexported and no tag says that they are left out.
func (packed[T]) usable() error {
	s := make(unstoredSearch)
	if in, f, found := s.find(reflect.TypeFor[T]()); found {
		return fmt.Errorf("shared.Msgpack does not store the field %s of %v, as it is unexported: export it, or leave it out by the tag `msgpack:\"-\"`, or give %v methods EncodeMsgpack and DecodeMsgpack", f.Name, in, in)
	}
	return nil
}

// unstoredSearch searches types for a field that Msgpack does not store. It has the types that it has
// visited.
type unstoredSearch map[reflect.Type]bool

// find returns the first such field in t, and the struct that has it.
func (s unstoredSearch) find(t reflect.Type) (in reflect.Type, f reflect.StructField, found bool) {
	if s[t] || hasOwnEncoder(t) {
		return nil, f, false
	}
	s[t] = true
	switch t.Kind() {
	case reflect.Map:
		if in, f, found = s.find(t.Key()); found {
			return in, f, true
		}
		return s.find(t.Elem())
	case reflect.Pointer, reflect.Slice, reflect.Array:
		return s.find(t.Elem())
	case reflect.Struct:
		for i := range t.NumField() {
			f = t.Field(i)
			switch {
			case isLeftOut(f) || f.Name == "_" || f.Name == "_msgpack" || f.Type.Size() == 0:
				continue // left out, or padding, or options of the encoding
			case !f.IsExported() && !f.Anonymous:
				return t, f, true
			}
			if in, inner, found := s.find(f.Type); found {
				return in, inner, true
			}
		}
	}
	return nil, f, false
}

var ownEncoders = []reflect.Type{
	reflect.TypeFor[msgpack.CustomEncoder](), reflect.TypeFor[msgpack.Marshaler](),
	reflect.TypeFor[encoding.BinaryMarshaler](), reflect.TypeFor[encoding.TextMarshaler](),
}

// hasOwnEncoder reports whether a type or the pointer to it has methods that encode it.
func hasOwnEncoder(t reflect.Type) bool {
	return slices.ContainsFunc(ownEncoders, func(encoder reflect.Type) bool {
		return t.Implements(encoder) || reflect.PointerTo(t).Implements(encoder)
	})
}

// restore decodes an object that another program may have saved, whose type T may have had other fields.
// It returns an error that names the fields that T does not have, and those that T has and the object
// has not. It decodes renamed fields that the tag declares, as in `msgpack:"new,alias:old"`. A field with
// the option omitempty may be missing.
func (c packed[T]) restore(src []byte) (v T, err error) {
	if v, err = c.decode(src, true); err != nil {
		return v, err
	}
	again, err := c.Append(nil, v)
	var missing []string
	if err == nil {
		missing, err = missingEntries(src, again)
	}
	if err == nil && missing != nil {
		err = fmt.Errorf("shared: decode %v: there is no field %s: the type has got it since the object was saved; give it the tag option omitempty if its zero value is right for such objects", reflect.TypeFor[T](), strings.Join(missing, " and no field "))
	}
	if err != nil {
		var zero T
		return zero, err
	}
	return v, nil
}

// missingEntries returns the keys of entries of a map in after that the map at the same place in before
// does not have, for the first map in before that has fewer entries. Places that have values of
// different forms are passed over.
func missingEntries(before, after []byte) ([]string, error) {
	if string(before) == string(after) {
		return nil, nil
	}
	first, err := packedHead(before, 0)
	if err != nil {
		return nil, err
	}
	second, err := packedHead(after, 0)
	if err != nil || first.isMap != second.isMap || !first.isMap && first.elements != second.elements {
		return nil, err
	}
	held, err := packedElements(before, first)
	if err != nil {
		return nil, err
	}
	other, err := packedElements(after, second)
	if err != nil {
		return nil, err
	}
	if !first.isMap {
		for i := range held {
			if missing, err := missingEntries(held[i], other[i]); missing != nil || err != nil {
				return missing, err
			}
		}
		return nil, nil
	}
	return missingFrom(held, other)
}

// missingFrom does the same as missingEntries for two maps, given as their keys and values in turn.
func missingFrom(before, after [][]byte) (missing []string, err error) {
	values := make(map[string][]byte, len(before)/2)
	for i := 0; i < len(before); i += 2 {
		values[string(before[i])] = before[i+1]
	}
	for i := 0; i < len(after); i += 2 {
		value, known := values[string(after[i])]
		if !known && len(before) < len(after) {
			missing = append(missing, keyText(after[i]))
		} else if known && missing == nil {
			within, err := missingEntries(value, after[i+1])
			if within != nil || err != nil {
				return within, err
			}
		}
	}
	return missing, nil
}

// keyText returns the encoded key of a map entry for messages.
func keyText(key []byte) string {
	var v any
	if err := msgpack.Unmarshal(key, &v); err != nil {
		return fmt.Sprintf("% x", key)
	}
	return brief(reflect.ValueOf(v))
}

// packedElements returns the bytes of each element of the array or map in src, which has the head h.
func packedElements(src []byte, h valueHead) ([][]byte, error) {
	elements, offset := make([][]byte, h.elements), h.size
	for i := range elements {
		end, err := skipPacked(src, offset, 0)
		if err != nil {
			return nil, err
		}
		elements[i], offset = src[offset:end], end
	}
	return elements, nil
}
