package bins

import (
	"slices"

	"github.com/superstep-ml/superstep/algorithms/model"
)

// Flags are the command-line flags that are common to all estimators that grow trees on binned
// rows.
var Flags = slices.Concat([]model.Flag{
	{Name: "categories", Param: "CategoricalCols", Tag: `placeholder:"COLUMN,..." help:"Columns whose whole numbers, 0 to 65,535, are categories. Text columns are always categorical; they may have up to 65,535 categories."`},
	{Name: "categories-at", Param: "CategoricalAt", Tag: `want:"0..2147483647" placeholder:"N" help:"The same for files whose features have no names, such as LibSVM: numbers of the components, from 0."`},
	{Name: "max-leaves", Param: "MaxLeaves", Tag: `want:"2..16777216" placeholder:"N" help:"Largest number of leaves of a tree."`},
	{Name: "max-bins", Param: "MaxBins", Tag: `want:"2..255" placeholder:"N" help:"Largest number of bins of a feature of numbers, up to 255 (default: 255). It does not bound categories."`},
}, model.ClassWeightFlags, []model.Flag{
	{Name: "zero-if-missing", Param: "AbsentIsZero", Tag: `help:"Values absent from sparse rows are 0, not missing."`},
})
