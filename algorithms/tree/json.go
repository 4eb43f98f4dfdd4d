package tree

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"unicode/utf8"
)

// These are the members of the objects in the JSON format. Required members come first.
var (
	ensembleMembers = []string{"features", "outputs", "base", "trees", "categories", "average", "single", "seen"}
	categoryMembers = []string{"feature", "names"}
	seenMembers     = []string{"feature", "codes"}
	treeMembers     = []string{"feature", "left", "threshold", "value", "right", "flags", "set", "setWords", "gain", "cover", "count", "sets", "values", "output", "weight"}
)

// These are the numbers of required members of each object.
const (
	ensembleRequired = 4
	categoryRequired = 2
	seenRequired     = 2
	treeRequired     = 4
)

// MarshalJSON returns the JSON format of an ensemble that model files contain: an object in
// which each tree has one list for each field of its nodes. Numbers are written as the shortest
// decimals that read back to the same bits.
//
//	{"features": ["age", "port"], "categories": [{"feature": 1, "names": ["C", "Q", "S"]}],
//	 "outputs": 1, "base": [0.5], "single": true, "trees": [
//	  {"feature": [0, 0, 0], "left": [1, 0, 0], "threshold": [31, 0, 0], "value": [0, -0.2, 0.3],
//	   "gain": […], "cover": […], "count": […], "flags": […]}]}
//
// A tree always has "feature", "left", "threshold" and "value". It has "right" if at least one
// right child is not the node after the left child. Lists of zeros are left out, and so are an
// output of 0, a weight of 1, and "categories", "average" and "single" with zero values.
// Infinite thresholds are the strings "inf" and "-inf". Equal ensembles give equal bytes. An
// invalid ensemble, or a name that is not UTF-8, is an error.
func (e Ensemble) MarshalJSON() ([]byte, error) { return e.AppendJSON(nil) }

// AppendJSON appends the text of MarshalJSON. For large ensembles it needs little more memory
// than the text itself.
func (e *Ensemble) AppendJSON(b []byte) ([]byte, error) {
	if err := e.Validate(); err != nil {
		return nil, err
	}
	b, err := e.appendFront(b)
	if err != nil {
		return nil, err
	}
	nodes, done, begin := 0, 0, len(b)
	for t := range e.Trees {
		nodes += len(e.Trees[t].Nodes)
	}
	for t := range e.Trees {
		if t > 0 {
			b = append(b, ',')
		}
		// Reserve memory for the remaining trees, estimated from the bytes per node so far.
		// Otherwise append would double the memory.
		if own := len(e.Trees[t].Nodes); t > 0 && cap(b)-len(b) < 2*own*(len(b)-begin)/done {
			b = slices.Grow(b, int(float64(len(b)-begin)*(float64(nodes-done)/float64(done)*1.02))+2*own*(len(b)-begin)/done)
		}
		b = e.Trees[t].appendJSON(b)
		done += len(e.Trees[t].Nodes)
	}
	return append(b, "]}"...), nil
}

// appendFront appends everything before the list of trees, and the opening bracket of the list.
func (e *Ensemble) appendFront(b []byte) ([]byte, error) {
	b = append(b, `{"features":`...)
	b, err := appendStrings(b, e.Features)
	if err != nil {
		return nil, err
	}
	if b, err = e.appendCategories(b); err != nil {
		return nil, err
	}
	b = e.appendSeen(b)
	b = append(b, `,"outputs":`...)
	b = strconv.AppendInt(b, int64(e.Outputs), 10)
	b = appendList(b, "base", e.Base, appendFloat)
	if e.Average {
		b = append(b, `,"average":true`...)
	}
	if e.Single {
		b = append(b, `,"single":true`...)
	}
	return append(b, `,"trees":[`...), nil
}

func appendStrings(b []byte, all []string) ([]byte, error) {
	b = append(b, '[')
	for i, s := range all {
		if !utf8.ValidString(s) {
			return nil, fmt.Errorf("tree: the name %q is not UTF-8, which JSON cannot hold", s)
		}
		text, err := json.Marshal(s)
		if err != nil {
			return nil, err
		}
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, text...)
	}
	return append(b, ']'), nil
}

func (e *Ensemble) appendCategories(b []byte) ([]byte, error) {
	separator := `,"categories":[`
	for f, names := range e.Categories {
		if names == nil {
			continue
		}
		b = append(b, separator...)
		b = append(b, `{"feature":`...)
		b = strconv.AppendInt(b, int64(f), 10)
		b = append(b, `,"names":`...)
		var err error
		if b, err = appendStrings(b, names); err != nil {
			return nil, err
		}
		b = append(b, '}')
		separator = ","
	}
	if separator == "," {
		b = append(b, ']')
	}
	return b, nil
}

func (e *Ensemble) appendSeen(b []byte) []byte {
	separator := `,"seen":[`
	for f, codes := range e.Seen {
		if codes == nil {
			continue
		}
		b = append(append(b, separator...), `{"feature":`...)
		b = strconv.AppendInt(b, int64(f), 10)
		b = append(appendList(b, "codes", codes, appendInt), '}')
		separator = ","
	}
	if separator == "," {
		b = append(b, ']')
	}
	return b
}

func appendFloat(b []byte, x float64) []byte {
	switch {
	case x > math.MaxFloat64:
		return append(b, `"inf"`...)
	case x < -math.MaxFloat64:
		return append(b, `"-inf"`...)
	}
	return strconv.AppendFloat(b, x, 'g', -1, 64)
}

func appendInt[T int32 | int64 | uint32 | Flags](b []byte, x T) []byte {
	return strconv.AppendInt(b, int64(x), 10)
}

// appendList appends a member that is a list.
func appendList[T any](b []byte, name string, list []T, each func([]byte, T) []byte) []byte {
	b = append(append(append(b, `,"`...), name...), `":[`...)
	for i, x := range list {
		if i > 0 {
			b = append(b, ',')
		}
		b = each(b, x)
	}
	return append(b, ']')
}

// appendColumn appends a list with one field of all nodes. If always is false and all values
// are 0, it appends nothing.
func appendColumn[T comparable](b []byte, name string, nodes []Node, always bool, field func(*Node) T, each func([]byte, T) []byte) []byte {
	b = append(append(append(b, `,"`...), name...), `":[`...)
	start, zeros := len(b), true
	for i := range nodes {
		if i > 0 {
			b = append(b, ',')
		}
		b = each(b, field(&nodes[i]))
		zeros = zeros && b[len(b)-1] == '0' && (len(b)-start == 2*i+1)
	}
	if zeros && !always {
		return b[:start-len(`,"":[`)-len(name)]
	}
	return append(b, ']')
}

func (t *Tree) appendJSON(b []byte) []byte {
	open := len(b)
	b = appendColumn(b, "feature", t.Nodes, true, func(n *Node) int32 { return n.Feature }, appendInt)
	b[open] = '{'
	b = appendColumn(b, "left", t.Nodes, true, func(n *Node) int32 { return n.Left }, appendInt)
	if !t.adjacent() {
		b = appendColumn(b, "right", t.Nodes, true, func(n *Node) int32 { return n.Right }, appendInt)
	}
	b = appendColumn(b, "threshold", t.Nodes, true, func(n *Node) float64 { return n.Threshold }, appendFloat)
	b = appendColumn(b, "value", t.Nodes, true, func(n *Node) float64 { return n.Value }, appendFloat)
	b = appendColumn(b, "flags", t.Nodes, false, func(n *Node) Flags { return n.Flags }, appendInt)
	b = appendColumn(b, "gain", t.Nodes, false, func(n *Node) float64 { return n.Gain }, appendFloat)
	b = appendColumn(b, "cover", t.Nodes, false, func(n *Node) float64 { return n.Cover }, appendFloat)
	b = appendColumn(b, "count", t.Nodes, false, func(n *Node) int64 { return n.Count }, appendInt)
	b = appendColumn(b, "set", t.Nodes, false, func(n *Node) int32 { return n.Set }, appendInt)
	b = appendColumn(b, "setWords", t.Nodes, false, func(n *Node) int32 { return n.SetWords }, appendInt)
	if len(t.Sets) > 0 {
		b = appendList(b, "sets", t.Sets, appendInt)
	}
	if t.Values != nil {
		b = appendList(b, "values", t.Values, appendFloat)
	}
	if t.Output != 0 {
		b = append(b, `,"output":`...)
		b = appendInt(b, t.Output)
	}
	if t.Weight != 1 {
		b = append(b, `,"weight":`...)
		b = appendFloat(b, t.Weight)
	}
	return append(b, '}')
}

// adjacent reports whether every right child is the node after the left child.
func (t *Tree) adjacent() bool {
	for i := range t.Nodes {
		if n := &t.Nodes[i]; !n.Leaf() && n.Right != n.Left+1 {
			return false
		}
	}
	return true
}

// UnmarshalJSON reads the format that MarshalJSON writes, and no other. The following are
// errors: unknown, repeated or missing members, null, numbers out of range, lists of different
// lengths, and an ensemble that fails Validate. Memory use is in proportion to the length of
// text. After an error the ensemble is unchanged.
func (e *Ensemble) UnmarshalJSON(text []byte) error {
	if !json.Valid(text) {
		return errors.New("tree: the ensemble is not JSON")
	}
	r := &reader{text: text}
	var read Ensemble
	if err := read.readJSON(r); err != nil {
		return fmt.Errorf("tree: %w", err)
	}
	if err := read.Validate(); err != nil {
		return err
	}
	*e = read
	return nil
}

func (e *Ensemble) readJSON(r *reader) error {
	type category struct {
		feature int32
		names   []string
	}
	type known struct {
		feature int32
		codes   []int32
	}
	var categories []category
	var seen []known
	err := r.object(ensembleMembers, ensembleRequired, func(member string) (err error) {
		switch member {
		case "features":
			e.Features, err = list(r, (*reader).string)
		case "outputs":
			var n int32
			n, err = integer[int32](r)
			e.Outputs = int(n)
		case "base":
			e.Base, err = list(r, (*reader).float)
		case "average":
			e.Average, err = r.bool()
		case "single":
			e.Single, err = r.bool()
		case "categories":
			categories, err = list(r, func(r *reader) (c category, err error) {
				return c, r.object(categoryMembers, categoryRequired, func(member string) (err error) {
					if member == "feature" {
						c.feature, err = integer[int32](r)
						return err
					}
					c.names, err = list(r, (*reader).string)
					return err
				})
			})
		case "seen":
			seen, err = list(r, func(r *reader) (k known, err error) {
				return k, r.object(seenMembers, seenRequired, func(member string) (err error) {
					if member == "feature" {
						k.feature, err = integer[int32](r)
						return err
					}
					k.codes, err = list(r, integer[int32])
					return err
				})
			})
		case "trees":
			e.Trees, err = list(r, readTree)
		}
		return err
	})
	if err != nil {
		return err
	}
	for _, c := range categories {
		if c.feature < 0 || int(c.feature) >= len(e.Features) {
			return fmt.Errorf("categories of feature %d of %d", c.feature, len(e.Features))
		}
		if e.Categories == nil {
			e.Categories = make([][]string, len(e.Features))
		}
		if e.Categories[c.feature] != nil {
			return fmt.Errorf("categories of feature %d, twice", c.feature)
		}
		e.Categories[c.feature] = c.names
	}
	for _, k := range seen {
		if k.feature < 0 || int(k.feature) >= len(e.Features) {
			return fmt.Errorf("codes that were seen of feature %d of %d", k.feature, len(e.Features))
		}
		if e.Seen == nil {
			e.Seen = make([][]int32, len(e.Features))
		}
		if e.Seen[k.feature] != nil {
			return fmt.Errorf("codes that were seen of feature %d, twice", k.feature)
		}
		e.Seen[k.feature] = k.codes
	}
	return nil
}
