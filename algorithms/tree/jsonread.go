package tree

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
)

// reader parses a text that is known to be valid JSON.
type reader struct {
	text []byte
	at   int
}

// next skips white space and returns the next byte without consuming it. It returns 0 at the
// end of the text.
func (r *reader) next() byte {
	for r.at < len(r.text) {
		switch c := r.text[r.at]; c {
		case ' ', '\t', '\n', '\r':
			r.at++
		default:
			return c
		}
	}
	return 0
}

// pass consumes the next byte if it equals c, and reports whether it did.
func (r *reader) pass(c byte) bool {
	if r.next() != c {
		return false
	}
	r.at++
	return true
}

// object reads a JSON object, and calls read to read the value of each member. An unknown
// member, a repeated member, or the lack of any of the first `required` members is an error.
func (r *reader) object(members []string, required int, read func(member string) error) error {
	if !r.pass('{') {
		return r.unexpected("an object")
	}
	seen := make([]bool, len(members))
	for !r.pass('}') {
		r.pass(',')
		name, err := r.string()
		if err != nil {
			return err
		}
		i := slices.Index(members, name)
		switch {
		case i < 0:
			return fmt.Errorf("unknown member %q", name)
		case seen[i]:
			return fmt.Errorf("member %q occurs twice", name)
		}
		seen[i] = true
		r.pass(':')
		if err := read(name); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	if i := slices.Index(seen[:required], false); i >= 0 {
		return fmt.Errorf("member %q is missing", members[i])
	}
	return nil
}

// list reads a list. Its result is never nil.
func list[T any](r *reader, read func(*reader) (T, error)) ([]T, error) {
	if !r.pass('[') {
		return nil, r.unexpected("a list")
	}
	all := []T{}
	for !r.pass(']') {
		r.pass(',')
		x, err := read(r)
		if err != nil {
			return nil, fmt.Errorf("entry %d: %w", len(all), err)
		}
		all = append(all, x)
	}
	return all, nil
}

// string reads a string.
func (r *reader) string() (string, error) {
	if r.next() != '"' {
		return "", r.unexpected("a string")
	}
	end := r.at + 1
	for r.text[end] != '"' {
		if r.text[end] == '\\' {
			end++
		}
		end++
	}
	var s string
	err := json.Unmarshal(r.text[r.at:end+1], &s)
	r.at = end + 1
	return s, err
}

func (r *reader) bool() (bool, error) {
	switch string(r.token()) {
	case "true":
		return true, nil
	case "false":
		return false, nil
	}
	return false, errors.New("it is neither true nor false")
}

// token consumes a number or a word and returns it as a slice of the text.
func (r *reader) token() []byte {
	r.next()
	from := r.at
	for r.at < len(r.text) {
		c := r.text[r.at]
		if (c < '0' || c > '9') && (c < 'a' || c > 'z') && c != '-' && c != '+' && c != '.' && c != 'E' {
			break
		}
		r.at++
	}
	return r.text[from:r.at]
}

// float reads a number, or one of the strings "inf" and "-inf".
func (r *reader) float() (float64, error) {
	if r.next() == '"' {
		s, err := r.string()
		switch {
		case err != nil:
			return 0, err
		case s == "inf":
			return math.Inf(1), nil
		case s == "-inf":
			return math.Inf(-1), nil
		}
		return 0, fmt.Errorf("%q is no number", s)
	}
	token := r.token()
	x, err := strconv.ParseFloat(string(token), 64)
	if err != nil {
		return 0, r.number(token, err)
	}
	return x, nil
}

// integer reads an integer.
func integer[T int32 | int64 | uint32 | Flags](r *reader) (T, error) {
	token := r.token()
	x, err := strconv.ParseInt(string(token), 10, 64)
	if err != nil {
		return 0, r.number(token, err)
	}
	if int64(T(x)) != x {
		return 0, fmt.Errorf("%s is out of range", token)
	}
	return T(x), nil
}

// number returns the error for a token that is not a number of the expected type.
func (r *reader) number(token []byte, err error) error {
	switch {
	case len(token) == 0 || token[0] != '-' && (token[0] < '0' || token[0] > '9'):
		return r.unexpected("a number")
	case errors.Is(err, strconv.ErrRange):
		return fmt.Errorf("%s is out of range", token)
	}
	return fmt.Errorf("%s is no integer", token)
}

func (r *reader) unexpected(wanted string) error {
	return fmt.Errorf("byte %d: %s was expected", r.at, wanted)
}

// EachTree calls f with each tree of a list that Writer.AppendTrees wrote, in the order of the
// list. It stops if f returns an error. It does not validate trees; Writer.Add does. Memory use
// is in proportion to the length of the text of one tree.
func EachTree(text []byte, f func(t *Tree) error) error {
	if !json.Valid(text) {
		return errors.New("tree: the list of trees is not JSON")
	}
	r := &reader{text: text}
	if !r.pass('[') {
		return fmt.Errorf("tree: %w", r.unexpected("a list"))
	}
	for i := 0; !r.pass(']'); i++ {
		r.pass(',')
		t, err := readTree(r)
		if err != nil {
			return fmt.Errorf("tree: tree %d: %w", i, err)
		}
		if err := f(&t); err != nil {
			return err
		}
	}
	return nil
}

// columns has a list for each field of a tree's nodes.
type columns struct {
	feature, left, right, set, setWords []int32
	flags                               []Flags
	threshold, value, gain, cover       []float64
	count                               []int64
}

// readTree reads one tree.
func readTree(r *reader) (Tree, error) {
	t := Tree{Weight: 1}
	var c columns
	err := r.object(treeMembers, treeRequired, func(member string) (err error) {
		switch member {
		case "feature":
			c.feature, err = list(r, integer[int32])
		case "left":
			c.left, err = list(r, integer[int32])
		case "right":
			c.right, err = list(r, integer[int32])
		case "set":
			c.set, err = list(r, integer[int32])
		case "setWords":
			c.setWords, err = list(r, integer[int32])
		case "flags":
			c.flags, err = list(r, integer[Flags])
		case "threshold":
			c.threshold, err = list(r, (*reader).float)
		case "value":
			c.value, err = list(r, (*reader).float)
		case "gain":
			c.gain, err = list(r, (*reader).float)
		case "cover":
			c.cover, err = list(r, (*reader).float)
		case "count":
			c.count, err = list(r, integer[int64])
		case "sets":
			t.Sets, err = list(r, integer[uint32])
		case "values":
			t.Values, err = list(r, (*reader).float)
		case "output":
			t.Output, err = integer[int32](r)
		case "weight":
			t.Weight, err = r.float()
		}
		return err
	})
	if err == nil {
		t.Nodes, err = c.nodes()
	}
	return t, err
}

// nodes returns the nodes whose fields are in the columns.
func (c *columns) nodes() ([]Node, error) {
	n := len(c.left)
	for _, column := range [...]struct {
		name string
		n    int
		read bool
	}{
		{"feature", len(c.feature), true}, {"threshold", len(c.threshold), true}, {"value", len(c.value), true},
		{"right", len(c.right), c.right != nil}, {"set", len(c.set), c.set != nil},
		{"setWords", len(c.setWords), c.setWords != nil}, {"flags", len(c.flags), c.flags != nil},
		{"gain", len(c.gain), c.gain != nil}, {"cover", len(c.cover), c.cover != nil}, {"count", len(c.count), c.count != nil},
	} {
		if column.read && column.n != n {
			return nil, fmt.Errorf("%s has %d entries, and left has %d", column.name, column.n, n)
		}
	}
	nodes := make([]Node, n)
	for i := range nodes {
		nodes[i] = Node{
			Feature: c.feature[i], Left: c.left[i], Right: at(c.right, i), Set: at(c.set, i), SetWords: at(c.setWords, i),
			Flags: at(c.flags, i), Threshold: c.threshold[i], Value: c.value[i],
			Gain: at(c.gain, i), Cover: at(c.cover, i), Count: at(c.count, i),
		}
		if c.right == nil && c.left[i] != 0 && c.left[i] < math.MaxInt32 {
			nodes[i].Right = c.left[i] + 1
		}
	}
	return nodes, nil
}

// at returns list[i], or the zero value if i is beyond the end of the list.
func at[T any](list []T, i int) T {
	if i < len(list) {
		return list[i]
	}
	var none T
	return none
}
