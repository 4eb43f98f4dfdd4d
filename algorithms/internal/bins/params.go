package bins

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/superstep-ml/superstep/algorithms/internal/rows"
)

// Validate returns all errors in the choice of columns. It does not look at a dataset.
func (c Columns) Validate(label LabelKind) (errs []error) {
	bad := func(format string, a ...any) { errs = append(errs, fmt.Errorf(format, a...)) }
	if c.Label == "" && label != NoLabel {
		bad("LabelCol is empty: name the column of the labels")
	}
	if c.Vector != "" && len(c.Features) > 0 {
		bad("both VectorCol and FeatureCols are set: set one of them")
	}
	for _, name := range c.Categorical {
		if !slices.Contains(c.Features, name) {
			bad("CategoricalCols has %q, which FeatureCols has not", name)
		}
	}
	if len(c.CategoricalAt) > 0 && len(c.Features) > 0 {
		bad("CategoricalAt is for components of a vector, and FeatureCols are set: use CategoricalCols")
	} else if len(c.CategoricalAt) > 0 && slices.Min(c.CategoricalAt) < 0 {
		bad("CategoricalAt has %d: want numbers of components, from 0", slices.Min(c.CategoricalAt))
	}
	return errs
}

// CheckClassWeights returns an error for each factor that is not a number above 0.
func CheckClassWeights(weights map[string]float64) error {
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(weights)) {
		if w := weights[name]; !(w > 0 && w-w == 0) {
			errs = append(errs, fmt.Errorf("ClassWeights of %q is %v: want a number above 0", name, w))
		}
	}
	return errors.Join(errs...)
}

// CheckClasses returns an error if nothing can be learnt from the classes of a column, or if a
// key of weights is not one of these classes.
func (f *Facts) CheckClasses(column string, weights map[string]float64) error {
	if err := cmp.Or(rows.TwoClasses(column, f.Classes), rows.Weighty(f.Classes, f.ClassWeights)); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(weights)) {
		if !slices.Contains(f.Classes, name) {
			return fmt.Errorf("ClassWeights name %q, which is no class of column %q: there are %s", name, column, Listed(f.Classes))
		}
	}
	return nil
}

// ClassFactors returns, for each class, the factor by which the weights of its rows are
// multiplied. It is weights[class] if given. Otherwise it is 1 or, with balanced, the factor
// that gives each class an equal share of the total weight.
func (f *Facts) ClassFactors(weights map[string]float64, balanced bool) []float64 {
	factors := make([]float64, len(f.Classes))
	for c, name := range f.Classes {
		factors[c] = 1
		if w, ok := weights[name]; ok {
			factors[c] = w
		} else if balanced {
			factors[c] = f.Weight / (float64(len(f.Classes)) * f.ClassWeights[c])
		}
	}
	return factors
}

// Listed formats at most 8 of the names, and how many more there are.
func Listed(names []string) string {
	if len(names) > 8 {
		return fmt.Sprintf("%q and %d more", names[:8], len(names)-8)
	}
	return fmt.Sprintf("%q", names)
}
