package bins

import "sort"

// setCategories gives a categorical feature its bins: the categories of rows with a weight,
// the most frequent ones (of equal ones those of lower code or text) where not all fit.
func (f *Feature) setCategories(d dictionary, text bool, most int) {
	order := make([]int, 0, len(d.Keys))
	for i, n := range d.Count {
		if n > 0 {
			order = append(order, i)
		}
	}
	if len(order) > most {
		sort.SliceStable(order, func(a, b int) bool { return d.Count[order[a]] > d.Count[order[b]] })
		order = order[:most]
		sort.Ints(order)
	}
	f.Bins = len(order)
	for b, i := range order {
		if text {
			f.Names = append(f.Names, d.text(i))
			f.Codes = append(f.Codes, int32(b))
		} else {
			f.Codes = append(f.Codes, codeOf(d.Keys[i]))
		}
	}
}

// Category returns the code of a category of a column of text, −1 where it is none that has
// a bin.
func (f *Feature) Category(text string) int {
	i := sort.SearchStrings(f.Names, text)
	if i < len(f.Names) && f.Names[i] == text {
		return i
	}
	return -1
}
