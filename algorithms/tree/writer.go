package tree

import (
	"errors"
	"fmt"
)

// A Writer produces the JSON text of an ensemble, with the same bytes as Ensemble.MarshalJSON.
// Trees are added one after the other and need not be kept. The text of a tree takes less
// memory than the tree.
type Writer struct {
	e     *Ensemble
	total int
	added int
	nodes int    // number of nodes of the added trees
	text  []byte // the JSON list of the added trees, without brackets
	depth []int32
}

// NewWriter returns a Writer of an ensemble. The ensemble must not have trees, and must not be
// modified before AppendJSON returns. total is the number of expected trees, for which memory
// is reserved.
func NewWriter(e *Ensemble, total int) (*Writer, error) {
	if len(e.Trees) > 0 {
		return nil, errors.New("tree: the ensemble to write has trees already: add them")
	}
	if err := e.Validate(); err != nil {
		return nil, err
	}
	return &Writer{e: e, total: total}, nil
}

// Add appends the tree t, which it uses only until it returns. If Ensemble.Validate would
// refuse the tree, Add returns an error and does not add the tree.
func (w *Writer) Add(t *Tree) error {
	var err error
	if w.depth, err = w.e.validate(t, w.depth); err != nil {
		return fmt.Errorf("tree: tree %d: %w", w.added, err)
	}
	w.reserve(len(t.Nodes))
	if w.added > 0 {
		w.text = append(w.text, ',')
	}
	w.text = t.appendJSON(w.text)
	w.added++
	w.nodes += len(t.Nodes)
	return nil
}

// AppendTrees appends the list of the trees added so far, as JSON. EachTree reads it.
func (w *Writer) AppendTrees(dst []byte) []byte {
	return append(append(append(dst, '['), w.text...), ']')
}

// Size returns the number of bytes of the text of the added trees.
func (w *Writer) Size() int { return len(w.text) }

const (
	// frontRoom is the memory, in bytes, that is reserved for the text before and after the
	// trees.
	frontRoom = 1 << 16
	// mostAhead is the largest number of bytes that are reserved for expected trees. If the
	// text is already longer, the length of the text is the limit instead.
	mostAhead = 256 << 20
)

// reserve reserves memory for a tree with the given number of nodes. If new memory is needed,
// it also reserves memory for all expected trees. Reserving too much is cheap, because pages
// that are never written to cost no memory. Reserving too little is not: a slice that is
// replaced by a larger slice takes memory until it is garbage collected.
func (w *Writer) reserve(nodes int) {
	if w.added == 0 {
		return
	}
	perNode, perTree := float64(len(w.text))/float64(w.nodes), float64(len(w.text))/float64(w.added)
	own := int(1.5*perNode*float64(nodes)) + frontRoom
	if cap(w.text)-len(w.text) >= own {
		return
	}
	ahead := perTree * 1.04 * float64(max(w.total-w.added, 0))
	room := own + int(min(ahead, float64(max(len(w.text), mostAhead))))
	w.text = append(make([]byte, 0, len(w.text)+room), w.text...)
}

// AppendJSON appends the ensemble with the added trees. The Writer must not be used afterwards:
// the result uses the memory of the Writer if that is large enough to hold dst too.
func (w *Writer) AppendJSON(dst []byte) ([]byte, error) {
	front, err := w.e.appendFront(dst)
	if err != nil {
		return nil, err
	}
	text, n := w.text, len(w.text)
	w.text = nil
	if size := len(front) + n; cap(text) >= size {
		text = text[:size]
	} else {
		text = append(text, make([]byte, len(front))...)
	}
	copy(text[len(front):], text[:n])
	copy(text, front)
	return append(text, "]}"...), nil
}
