package model

import "github.com/superstep-ml/superstep/algorithms/tree"

// Treatment says how a model treats rows with a missing value, or with a category that training
// has not seen.
type Treatment int

const (
	Untold      Treatment = iota // not known
	Taken                        // the value counts like others
	FilledIn                     // another value is put in its place
	LeftOut                      // the row is left out
	Unpredicted                  // the row gets no prediction
	LikeMissing                  // the category goes where missing values go
	LikeAverage                  // the category counts as the average of the categories
	LikeNone                     // the category counts as none of them
)

// Treater is a Model that tells how it treats such values in a column that it reads.
type Treater interface {
	Treats(column string) (missing, unseen Treatment)
}

// Categories are the categories that training has seen, by the columns that a model reads.
type Categories struct {
	Values map[string][]string // of text
	Codes  map[string][]int32  // of whole numbers
	Rows   int64               // number of training rows; 0 where it is not known
}

// Categorizer is a Model that keeps categories.
type Categorizer interface {
	Categories() Categories
}

// TreeCategories returns the categories of an ensemble that was trained on so many rows.
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

// Deriver is a Model that makes a new column from each of some columns, with the same meaning.
type Deriver interface {
	// Derives returns the columns read and the columns made of them, in the same order. There
	// is at least one.
	Derives() (from, made []string)
}

// Naming gives columns and their values the texts that stand for them in names of components.
type Naming interface {
	Column(name string) string
	Value(text string) string
}

// ComponentNamer is a Model that makes vectors whose components have names.
type ComponentNamer interface {
	// ComponentNames returns the names of the components of a column that the model makes; nil
	// for other columns. before returns those of a column that the model reads; nil where they
	// are not known.
	ComponentNames(column string, n Naming, before func(column string) []string) []string
}
