package bins

import (
	"slices"

	"github.com/superstep-ml/superstep/algorithms/model"
)

// Flags are those of all estimators that make trees of binned rows.
var Flags = slices.Concat([]model.Flag{
	{Name: "categories", Param: "CategoricalCols", Tag: `placeholder:"COLUMN,..." help:"Columns whose whole numbers, 0 to 65,535, are categories. Text always is, with up to 65,535 of them."`},
	{Name: "categories-at", Param: "CategoricalAt", Tag: `want:"0..2147483647" placeholder:"N" help:"The same of files whose features have no names, such as LibSVM: numbers of the components, the first of which is 0."`},
	{Name: "max-leaves", Param: "MaxLeaves", Tag: `want:"2..16777216" placeholder:"N" help:"Largest number of leaves of a tree."`},
	{Name: "max-bins", Param: "MaxBins", Tag: `want:"2..255" placeholder:"N" help:"Largest number of bins of a feature of numbers, up to 255 (default: 255). Categories are not bounded by it."`},
}, model.ClassWeightFlags, []model.Flag{
	{Name: "zero-if-missing", Param: "AbsentIsZero", Tag: `help:"Take what sparse rows leave out for 0, in place of missing."`},
})
