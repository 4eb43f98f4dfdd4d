package xgboost

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
)

// member is a member of an object, for writing.
//
// Values of JSON and UBJSON are read as nil, bool, float64, string, []float64 (an array with
// only numbers and bools, or without elements), []any and map[string]any. They are written from
// string, int, float32, []float32, []int32, []int64, []uint8 (these four become typed arrays in
// UBJSON), []int, []string, []any and members.
type member struct {
	name  string
	value any
}

type members []member

// maxDepth bounds the nesting of values. The values in models are nested 9 deep.
const maxDepth = 32

var errDeep = fmt.Errorf("values are nested more than %d deep", maxDepth)

// node is a value and its path in the file. The path is used in errors.
type node struct {
	up    *node
	key   string
	index int // index in an array, if key is ""
	value any
}

// path returns the path of a node, such as learner.objective.name or trees[3].
func (n *node) path() string {
	if n.up == nil {
		return ""
	}
	above := n.up.path()
	switch {
	case n.key == "":
		return above + "[" + strconv.Itoa(n.index) + "]"
	case above == "":
		return n.key
	}
	return above + "." + n.key
}

func (n *node) fail(format string, a ...any) error {
	path := n.path()
	if path == "" {
		path = "the file"
	}
	return fmt.Errorf("%s: %w", path, fmt.Errorf(format, a...))
}

// kindOf returns the name of the kind of a value, for errors.
func kindOf(v any) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case bool:
		return "a bool"
	case float64:
		return "a number"
	case string:
		return "text"
	case []float64:
		if len(v) == 0 {
			return "an empty array"
		}
		return "an array of numbers"
	case []any:
		return "an array"
	}
	return "an object"
}

// find returns the member of an object with the name key, or nil if there is none.
func (n *node) find(key string) *node {
	object, _ := n.value.(map[string]any)
	v, ok := object[key]
	if !ok {
		return nil
	}
	return &node{up: n, key: key, value: v}
}

// reader reads the values of nodes. It keeps the first error. After an error its methods return
// zero values.
type reader struct {
	err error
	// words is the number of words that sets of categories may still take.
	words int
}

func (r *reader) fail(n *node, format string, a ...any) {
	if r.err == nil {
		r.err = n.fail(format, a...)
	}
}

var nothing = &node{}

// member returns the required member of n at path.
func (r *reader) member(n *node, path ...string) *node {
	for _, key := range path {
		if r.err != nil {
			return nothing
		}
		if _, ok := n.value.(map[string]any); !ok {
			r.fail(n, "it is %s: want an object", kindOf(n.value))
			return nothing
		}
		m := n.find(key)
		if m == nil {
			r.fail(n, "it has no member %q", key)
			return nothing
		}
		n = m
	}
	return n
}

func (r *reader) text(n *node) string {
	if r.err != nil {
		return ""
	}
	s, ok := n.value.(string)
	if !ok {
		r.fail(n, "it is %s: want text", kindOf(n.value))
	}
	return s
}

// count returns an integer from 0 to most. Files may have it as a number or as text.
func (r *reader) count(n *node, most int) int {
	if r.err != nil {
		return 0
	}
	v, err := -1, error(nil)
	switch x := n.value.(type) {
	case string:
		v, err = strconv.Atoi(x)
	case float64:
		if x != math.Trunc(x) || !(math.Abs(x) < 1<<53) {
			err = errors.New("it has decimals")
		} else {
			v = int(x)
		}
	default:
		err = errors.New("it is none")
	}
	if err != nil || v < 0 || v > most {
		r.fail(n, "%s: want an integer from 0 to %d", shorten(n.value), most)
		return 0
	}
	return v
}

// shorten shortens a value for messages.
func shorten(v any) string {
	switch v := v.(type) {
	case string:
		if len(v) > 40 {
			return strconv.Quote(strings.ToValidUTF8(v[:40], "")) + "…"
		}
		return strconv.Quote(v)
	case float64:
		return strconv.FormatFloat(v, 'g', -1, 64)
	}
	return kindOf(v)
}

// numbers returns an array of numbers. It must have the given length, unless length is
// negative.
func (r *reader) numbers(n *node, length int) []float64 {
	if r.err != nil {
		return nil
	}
	list, ok := n.value.([]float64)
	if !ok {
		r.fail(n, "it is %s: want an array of numbers", kindOf(n.value))
		return nil
	}
	if length >= 0 && len(list) != length {
		r.fail(n, "it has %d numbers: want %d", len(list), length)
		return nil
	}
	return list
}

// integers does what numbers does, and requires integers from least to most.
func (r *reader) integers(n *node, length int, least, most float64) []float64 {
	list := r.numbers(n, length)
	for i, v := range list {
		if v != math.Trunc(v) || v < least || v > most { // NaN satisfies the first condition
			r.fail(&node{up: n, index: i}, "it is %v: want an integer from %.0f to %.0f", v, least, most)
			return nil
		}
	}
	return list
}

// array returns the elements of an array, which must be empty or have an element that is
// neither a number nor a bool.
func (r *reader) array(n *node) []any {
	if r.err != nil {
		return nil
	}
	switch list := n.value.(type) {
	case []any:
		return list
	case []float64:
		if len(list) == 0 {
			return nil
		}
	}
	r.fail(n, "it is %s: want an array", kindOf(n.value))
	return nil
}

// texts returns the elements of an array of texts.
func (r *reader) texts(n *node) []string {
	list := r.array(n)
	made := make([]string, 0, len(list))
	for i, v := range list {
		made = append(made, r.text(&node{up: n, index: i, value: v}))
	}
	return made
}

// pairs returns an object whose members are texts.
func (r *reader) pairs(n *node) map[string]string {
	if r.err != nil {
		return nil
	}
	object, ok := n.value.(map[string]any)
	if !ok {
		r.fail(n, "it is %s: want an object", kindOf(n.value))
		return nil
	}
	if len(object) == 0 {
		return nil
	}
	made := make(map[string]string, len(object))
	for _, key := range slices.Sorted(maps.Keys(object)) {
		made[key] = r.text(n.find(key))
	}
	return made
}
