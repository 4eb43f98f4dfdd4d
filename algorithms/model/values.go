package model

import "github.com/superstep-ml/superstep/algorithms/tree"

// Treatment says how a model treats a missing value, or a category that training has not seen.
type Treatment int

const (
	Untold      Treatment = iota // it is not known
	Taken                        // the value is used like any other value
	FilledIn                     // the value is replaced by another value
	LeftOut                      // the row is left out
	Unpredicted                  // the row gets no prediction
	LikeMissing                  // the category is treated as a missing value
	LikeAverage                  // the category is treated as the average of the known categories
	LikeNone                     // the category is treated as different from all known categories
)

// Treater is a Model that reports how it treats missing values and unseen categories in a
// column that it reads.
type Treater interface {
	Treats(column string) (missing, unseen Treatment)
}

// Categories has the categories that training has seen. The keys of the maps are the names of
// the columns that a model reads.
type Categories struct {
	Values map[string][]string // categories that are text
	Codes  map[string][]int32  // categories that are integer codes
	Rows   int64               // number of training rows; 0 if it is not known
}

// Categorizer is a Model that stores the categories that training has seen.
type Categorizer interface {
	Categories() Categories
}

// TreeCategories returns the categories of an ensemble. rows is the number of rows on which it
// was trained.
func TreeCategories(e *tree.Ensemble, rows int64) Categories {
	c := Categories{Values: map[string][]string{}, Codes: map[string][]int32{}, Rows: rows}
	for j, values := range e.Categories {
		if values != nil {
			c.Values[e.Features[j]] = values
		}
	}
	for j, codes := range e.Seen {
		if codes != nil {
			c.Codes[e.Features[j]] = codes
		}
	}
	return c
}

// Deriver is a Model that makes new columns, each from one column that it reads. A new column
// has the same meaning as the column from which it is made.
type Deriver interface {
	// Derives returns names of columns: the model makes the column made[i] from the column
	// from[i]. There is at least one such pair.
	Derives() (from, made []string)
}

// Naming returns the texts that represent columns and their values in the names of components.
type Naming interface {
	Column(name string) string
	Value(text string) string
}

// ComponentNamer is a Model that makes vectors whose components have names.
type ComponentNamer interface {
	// ComponentNames returns the names of the components of a column that the model makes, or
	// nil for other columns. before returns the names of the components of a column that the
	// model reads, or nil if they are not known.
	ComponentNames(column string, n Naming, before func(column string) []string) []string
}
