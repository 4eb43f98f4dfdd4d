package prepare

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/superstep-ml/superstep/algorithms/model"
)

// categories counts the distinct values of columns.
type categories struct {
	Columns [][]category // for each column, its categories in the order of their texts
}

// category is a distinct value, as text written by Cell.Category, with the total weight of its
// rows.
type category struct {
	Text  string
	Count float64
}

// countCategories counts, in the rows of a shard, the distinct values of each column c for
// which wanted[c] is true. Null and NaN are not counted. Text that is not UTF-8 is an error.
func countCategories(w *work, wanted []bool) (*categories, error) {
	counts := make([]map[string]*float64, len(w.names))
	for c := range counts {
		counts[c] = map[string]*float64{}
	}
	err := w.each(func(row []model.Cell) error {
		for c := range row {
			if !wanted[c] {
				continue
			}
			text, ok := categoryOf(&row[c])
			if !ok {
				continue
			}
			n := counts[c][string(text)]
			if n == nil {
				// Checking the first row of a category is enough.
				if !utf8.Valid(text) {
					return columnError(w.names[c], fmt.Errorf("the text %q is not UTF-8, which no model's file can hold: write it in UTF-8", text))
				}
				n = new(float64)
				counts[c][string(text)] = n
			}
			*n += w.weight
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	all := &categories{}
	for _, of := range counts {
		list := make([]category, 0, len(of))
		for text, n := range of {
			list = append(list, category{text, *n})
		}
		slices.SortFunc(list, func(a, b category) int { return cmp.Compare(a.Text, b.Text) })
		all.Columns = append(all.Columns, list)
	}
	return all, nil
}

// counting returns the pass that counts the categories of the wanted columns.
func counting(wanted []bool) pass {
	return pass{name: "categories", size: func(*facts) (int, int) { return 0, 0 }, count: wanted}
}

// all returns a slice of n elements, all true.
func all(n int) []bool {
	wanted := make([]bool, n)
	for i := range wanted {
		wanted[i] = true
	}
	return wanted
}

// categoryOf returns the text of a cell's value. ok is false for null and NaN.
func categoryOf(c *model.Cell) (text []byte, ok bool) {
	if c.Kind == model.FloatCell && c.Float != c.Float {
		return nil, false
	}
	return c.Category()
}

// mergeCategories returns the union of the categories of two sets of shards. The weights of
// equal values are added.
func mergeCategories(left, right *categories) *categories {
	merged := &categories{}
	for c := range left.Columns {
		a, b := left.Columns[c], right.Columns[c]
		list := make([]category, 0, max(len(a), len(b)))
		for len(a) > 0 && len(b) > 0 {
			switch order := cmp.Compare(a[0].Text, b[0].Text); {
			case order < 0:
				list, a = append(list, a[0]), a[1:]
			case order > 0:
				list, b = append(list, b[0]), b[1:]
			default:
				list = append(list, category{a[0].Text, a[0].Count + b[0].Count})
				a, b = a[1:], b[1:]
			}
		}
		merged.Columns = append(merged.Columns, append(append(list, a...), b...))
	}
	return merged
}

// compareValues returns the function that orders the texts of a column's values. If number is
// set, the function compares the numbers that the texts represent. Otherwise it compares the
// bytes of the texts, so that "false" comes before "true".
func compareValues(number bool) func(a, b string) int {
	if !number {
		return cmp.Compare[string]
	}
	return func(a, b string) int {
		i, wrong := strconv.ParseInt(a, 10, 64)
		j, wrongToo := strconv.ParseInt(b, 10, 64)
		if wrong == nil && wrongToo == nil {
			return cmp.Compare(i, j)
		}
		x, _ := strconv.ParseFloat(a, 64)
		y, _ := strconv.ParseFloat(b, 64)
		return cmp.Or(cmp.Compare(x, y), cmp.Compare(a, b))
	}
}
