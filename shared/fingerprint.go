package shared

import (
	"encoding/binary"
	"math"
	"reflect"

	"github.com/zeebo/xxh3"
)

// fingerprint hashes one object: by its own method, by its codec, or by walking
// over it where c is nil.
func fingerprint[T any](c Codec[T], v T) (uint64, error) {
	if own, ok := any(v).(interface{ Fingerprint() uint64 }); ok {
		return own.Fingerprint(), nil
	}
	if c != nil {
		data, err := c.Append(nil, v)
		if err != nil {
			return 0, err
		}
		return xxh3.Hash(data), nil
	}
	w := walker{seen: make(map[visit]int)}
	w.walk(reflect.ValueOf(&v).Elem())
	return w.hash.Sum64(), nil
}

// walker hashes what can be reached from a value: numbers by their bits, strings
// and slices with their lengths, pointers by what they point to (one met before
// by the place in the order of meeting), so that the hash says nothing of
// addresses. Maps add up the hashes of their entries, whose order does not
// count. Functions and channels have no content; of them only nil is seen.
type walker struct {
	hash xxh3.Hasher
	word [8]byte
	seen map[visit]int
}

type visit struct {
	typ     reflect.Type
	pointer uintptr
}

func (w *walker) put(x uint64) {
	binary.LittleEndian.PutUint64(w.word[:], x)
	w.hash.Write(w.word[:])
}

func (w *walker) putBool(x bool) {
	if x {
		w.put(1)
	} else {
		w.put(0)
	}
}

// walk hashes v. Types that are fixed by the type of the key leave no trace of
// their own; what an interface holds does.
func (w *walker) walk(v reflect.Value) {
	if !v.IsValid() { // the content of a nil interface
		w.put(0)
		return
	}
	switch v.Kind() {
	case reflect.Bool:
		w.putBool(v.Bool())
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		w.put(uint64(v.Int()))
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		w.put(v.Uint())
	case reflect.Float32, reflect.Float64:
		w.put(math.Float64bits(v.Float()))
	case reflect.Complex64, reflect.Complex128:
		w.put(math.Float64bits(real(v.Complex())))
		w.put(math.Float64bits(imag(v.Complex())))
	case reflect.String:
		w.put(uint64(v.Len()))
		w.hash.WriteString(v.String())
	case reflect.Array, reflect.Slice:
		w.put(uint64(v.Len()))
		if v.Kind() == reflect.Slice && v.Type().Elem().Kind() == reflect.Uint8 {
			w.hash.Write(v.Bytes())
			return
		}
		for i := range v.Len() {
			w.walk(v.Index(i))
		}
	case reflect.Struct:
		for i := range v.NumField() {
			w.walk(v.Field(i))
		}
	case reflect.Map:
		w.walkMap(v)
	case reflect.Interface:
		if !v.IsNil() {
			typ := v.Elem().Type().String()
			w.put(uint64(len(typ)))
			w.hash.WriteString(typ)
		}
		w.walk(v.Elem())
	case reflect.Pointer:
		w.walkPointer(v)
	default: // functions, channels and unsafe pointers
		w.putBool(!v.IsZero())
	}
}

func (w *walker) walkPointer(v reflect.Value) {
	if v.IsNil() {
		w.put(0)
		return
	}
	at := visit{v.Type(), v.Pointer()}
	if order, again := w.seen[at]; again {
		w.put(uint64(order))
		return
	}
	w.seen[at] = len(w.seen) + 1
	w.put(uint64(len(w.seen)))
	w.walk(v.Elem())
}

func (w *walker) walkMap(v reflect.Value) {
	w.put(uint64(v.Len()))
	sum := uint64(0)
	for entries := v.MapRange(); entries.Next(); {
		// Each entry starts from the pointers above the map, so that the
		// order of iteration does not show.
		entry := walker{seen: make(map[visit]int, len(w.seen))}
		for at, order := range w.seen {
			entry.seen[at] = order
		}
		entry.walk(entries.Key())
		entry.walk(entries.Value())
		sum += entry.hash.Sum64()
	}
	w.put(sum)
}
