package bins

import (
	"fmt"
	"sort"
)

// setCategories sets the bins of a categorical feature: one for each category that occurs in a
// row of positive weight. For a text feature that is missing in every row, Names is empty but
// not nil.
func (f *Feature) setCategories(d dictionary, text bool) {
	if text {
		f.Names = []string{}
	}
	for i, n := range d.Count {
		if n == 0 {
			continue
		}
		if text {
			f.Names = append(f.Names, d.Keys[i])
			f.Codes = append(f.Codes, int32(f.Bins))
		} else {
			f.Codes = append(f.Codes, codeOf(d.Keys[i]))
		}
		f.Bins++
	}
}

// tooManyCategories returns the error about a column with too many categories.
func tooManyCategories(column string) error {
	return fmt.Errorf("%s: there are more than %d categories, too many to learn from: leave the column out, or group them", column, MaxCategories)
}

// Category returns the code of a category of a text column, or −1 if the text has no bin.
func (f *Feature) Category(text string) int {
	i := sort.SearchStrings(f.Names, text)
	if i < len(f.Names) && f.Names[i] == text {
		return i
	}
	return -1
}
