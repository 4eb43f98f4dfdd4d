package model

import "github.com/superstep-ml/superstep/algorithms/tree"

// Treatment is what becomes of rows with a value that a model may have no place for: a missing
// one, or a category that training has not seen.
type Treatment int

const (
	Untold      Treatment = iota // nothing is known of it
	Taken                        // it is a value like others
	FilledIn                     // another value is put in its place
	LeftOut                      // the row is left out
	Unpredicted                  // the row gets no prediction
	LikeMissing                  // the category goes where missing values go
	LikeAverage                  // it counts as the average of the categories
	LikeNone                     // it counts as none of them
)

// Treater is a Model that tells what becomes of such values of a column that it reads.
type Treater interface {
	Treats(column string) (missing, unseen Treatment)
}

// Categories are those that training has seen, by the columns that a model reads.
type Categories struct {
	Values map[string][]string // of text
	Codes  map[string][]int32  // of whole numbers
	Rows   int64               // of training; 0 where that is not known
}

// Categorizer is a Model that keeps categories.
type Categorizer interface {
	Categories() Categories
}

// TreeCategories are those of an ensemble that was trained on some number of rows.
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

// Deriver is a Model that makes columns of others, one of each, that mean the same.
type Deriver interface {
	// Derives returns the columns and what is made of them, in the same order; at least one.
	Derives() (from, made []string)
}

// Naming says what columns and their values are called in the names of components.
type Naming interface {
	Column(name string) string
	Value(text string) string
}

// ComponentNamer is a Model that makes vectors whose components have names.
type ComponentNamer interface {
	// ComponentNames returns the names of the components of a column that the model makes, nil of
	// others. before returns those of the columns that it reads, nil where nothing tells them.
	ComponentNames(column string, n Naming, before func(column string) []string) []string
}
