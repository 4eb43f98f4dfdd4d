package evaluate

import (
	"cmp"
	"fmt"
	"slices"
)

// contingency is a contingency table: it has the weight of the rows for each pair of a true
// label and a given label. The given label is a predicted label or a cluster.
type contingency struct {
	Classes classes
	Rows    int64
	Truth   []int32 // Truth[i] and Given[i] are the numbers of the two labels of cell i
	Given   []int32
	Weight  []sum

	cells map[uint64]int32
}

// maxLabels is the largest number of distinct labels. A matrix over the labels has maxLabels²
// cells.
const maxLabels = 2000

// at returns the index of the cell for a pair of labels, and adds the cell if it is new.
func (c *contingency) at(truth, given int32) int32 {
	key := uint64(truth)<<32 | uint64(given)
	if at, ok := c.cells[key]; ok {
		return at
	}
	if c.cells == nil {
		c.cells = make(map[uint64]int32, len(c.Truth)+1)
		for i := range c.Truth {
			c.cells[uint64(c.Truth[i])<<32|uint64(c.Given[i])] = int32(i)
		}
		return c.at(truth, given)
	}
	at := int32(len(c.Truth))
	c.Truth, c.Given, c.Weight = append(c.Truth, truth), append(c.Given, given), append(c.Weight, sum{})
	c.cells[key] = at
	return at
}

// add adds the weights w of rows to the cells of their labels. If w is nil, every row weighs 1.
func (c *contingency) add(truth, given []int32, w []float64) error {
	for i, t := range truth {
		c.Weight[c.at(t, given[i])].add(weightOf(w, i))
	}
	c.Rows += int64(len(truth))
	return c.check()
}

func (c *contingency) check() error {
	if len(c.Classes.Texts) > maxLabels {
		return fmt.Errorf("there are more than %d distinct labels, such as %q and %q: are these numbers to be measured as a regression?", maxLabels, c.Classes.Texts[0], c.Classes.Texts[1])
	}
	return nil
}

// merge adds the counts of another table.
func (c *contingency) merge(o *contingency) {
	ids := make([]int32, len(o.Classes.Texts))
	for i, t := range o.Classes.Texts {
		ids[i] = c.Classes.id([]byte(t))
	}
	for i := range o.Truth {
		at := c.at(ids[o.Truth[i]], ids[o.Given[i]])
		c.Weight[at].merge(&o.Weight[i])
	}
	c.Rows += o.Rows
}

// cell has the rounded weight of a pair of labels. truth and given are indices into the sorted
// lists of labels.
type cell struct {
	truth, given int32
	weight       float64
}

// counts is a sorted contingency table. The cells of positive weight are sorted by true label,
// then by given label. truth has the weight of each true label, and given the weight of each
// given label.
type counts struct {
	labels       []string
	cells        []cell
	truth, given []float64
	total        float64
}

// counts returns the sorted table. Its labels are all true and all given labels, including
// labels whose rows have weight 0.
func (c *contingency) counts(byValue bool) *counts {
	rank, labels := c.Classes.ranked(byValue)
	n := len(labels)
	truth, given, total := make([]sum, n), make([]sum, n), sum{}
	r := &counts{labels: labels}
	for i := range c.Truth {
		t, g := rank[c.Truth[i]], rank[c.Given[i]]
		truth[t].merge(&c.Weight[i])
		given[g].merge(&c.Weight[i])
		total.merge(&c.Weight[i])
		if w := c.Weight[i].value(); w > 0 {
			r.cells = append(r.cells, cell{t, g, w})
		}
	}
	slices.SortFunc(r.cells, func(a, b cell) int {
		return cmp.Or(cmp.Compare(a.truth, b.truth), cmp.Compare(a.given, b.given))
	})
	for i := range n {
		r.truth, r.given = append(r.truth, truth[i].value()), append(r.given, given[i].value())
	}
	r.total = total.value()
	return r
}
