package evaluate

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"math/big"
	"reflect"
	"slices"
	"strconv"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/superstep-ml/superstep/internal/batch"
)

// Label is the type constraint of the labels in the functions that take slices. Labels are
// compared and reported as text, formatted as in CSV files: 1, 1.0 and int8(1) are the same
// label. Numbers are ordered by value, text by bytes, and false comes before true.
type Label interface {
	~bool | ~string |
		~int | ~int8 | ~int16 | ~int32 | ~int64 |
		~uint | ~uint8 | ~uint16 | ~uint32 | ~uint64 | ~float32 | ~float64
}

// classes numbers the distinct labels in the order of their first occurrence.
type classes struct {
	Texts []string
	ids   map[string]int32
	text  []byte // buffer for the text of a label
}

// id returns the number of a label and copies the text if the label is new.
func (k *classes) id(text []byte) int32 {
	if len(text) == 2 && text[0] == '-' && text[1] == '0' {
		text = text[1:]
	}
	if id, ok := k.ids[string(text)]; ok {
		return id
	}
	if k.ids == nil {
		k.ids = make(map[string]int32, len(k.Texts)+1)
		for i, t := range k.Texts {
			k.ids[t] = int32(i)
		}
		return k.id(text)
	}
	id := int32(len(k.Texts))
	own := string(text)
	k.Texts = append(k.Texts, own)
	k.ids[own] = id
	return id
}

// column returns the number of the label of each row of a column without nulls. It reuses the
// memory of dst.
func (k *classes) column(column arrow.Array, dst []int32) []int32 {
	dst = dst[:0]
	printer := batch.NewPrinter(column)
	for i := range column.Len() {
		k.text = printer.Append(k.text[:0], i)
		dst = append(dst, k.id(k.text))
	}
	return dst
}

// labelIDs returns the number of each label in a slice. It returns an error if a label is NaN.
func labelIDs[L Label](k *classes, labels []L, what string) ([]int32, error) {
	ids := make([]int32, len(labels))
	for i, l := range labels {
		text, ok := appendLabel(k.text[:0], l)
		if !ok {
			return nil, fmt.Errorf("%s %d is NaN", what, i)
		}
		k.text = text
		ids[i] = k.id(text)
	}
	return ids, nil
}

// appendLabel appends the text of a label, formatted as in columns. It returns false for a NaN.
func appendLabel[L Label](dst []byte, label L) ([]byte, bool) {
	v := reflect.ValueOf(label)
	switch {
	case v.Kind() == reflect.Bool:
		return strconv.AppendBool(dst, v.Bool()), true
	case v.Kind() == reflect.String:
		return append(dst, v.String()...), true
	case v.CanInt():
		return strconv.AppendInt(dst, v.Int(), 10), true
	case v.CanUint():
		return strconv.AppendUint(dst, v.Uint(), 10), true
	}
	return appendFloat(dst, v.Float(), v.Type().Bits()), !math.IsNaN(v.Float())
}

// appendFloat appends a float formatted as by batch.AppendValue.
func appendFloat(dst []byte, v float64, bits int) []byte {
	switch {
	case math.IsInf(v, 1):
		return append(dst, "+Inf"...)
	case math.IsInf(v, -1):
		return append(dst, "-Inf"...)
	}
	format := byte('f')
	if a := math.Abs(v); a != 0 && (a < 1e-4 || a >= 1e21) {
		format = 'e'
	}
	return strconv.AppendFloat(dst, v, format, -1, bits)
}

// isNumberLabel reports whether labels of type L are ordered by value.
func isNumberLabel[L Label]() bool {
	var zero L
	kind := reflect.TypeOf(zero).Kind()
	return kind != reflect.String && kind != reflect.Bool
}

// ranked sorts the labels in ascending order. rank[id] is the position of the label with number
// id in sorted.
func (k *classes) ranked(byValue bool) (rank []int32, sorted []string) {
	order := make([]int32, len(k.Texts))
	for i := range order {
		order[i] = int32(i)
	}
	var values []*big.Rat
	if byValue {
		for _, t := range k.Texts {
			v, ok := new(big.Rat).SetString(t)
			if !ok { // an infinity
				v = new(big.Rat).SetInt(new(big.Int).Lsh(big.NewInt(1), 2000))
				if t[0] == '-' {
					v.Neg(v)
				}
			}
			values = append(values, v)
		}
	}
	slices.SortFunc(order, func(a, b int32) int {
		if byValue {
			if c := values[a].Cmp(values[b]); c != 0 {
				return c
			}
		}
		return cmp.Compare(k.Texts[a], k.Texts[b])
	})
	rank = make([]int32, len(order))
	for place, id := range order {
		rank[id] = int32(place)
		sorted = append(sorted, k.Texts[id])
	}
	return rank, sorted
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
