package bins

import (
	"fmt"
	"sort"
)

// setCategories gives a categorical feature its bins: the categories of rows with a weight. Text
// that is missing in every row has Names too, of which there are none.
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

// tooManyCategories is what is wrong with a column of too many.
func tooManyCategories(column string) error {
	return fmt.Errorf("%s: there are more than %d categories; that many tell nothing: leave the column out, or group them", column, MaxCategories)
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
