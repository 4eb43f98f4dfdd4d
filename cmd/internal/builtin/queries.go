package builtin

import (
	"errors"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/superstep-ml/superstep/algorithms/gbdt"
	"github.com/superstep-ml/superstep/algorithms/model"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/operators"
)

// Flags of ranking estimators specify to which query each row belongs: --group names a column;
// --group-sizes and --test-group-sizes name files with the number of rows of each query.

// sizedGroup is the name of the column of queries that is made from --group-sizes.
const sizedGroup = "query by its size"

// groupProblems returns an error for each combination of query flags that is not allowed.
func (a training) groupProblems() (errs []error) {
	if a.text("group-sizes") != "" && a.text("group") != "" {
		errs = append(errs, errors.New("both --group and --group-sizes tell the queries of rows: give one of them"))
	}
	if (a.text("group-sizes") != "" && a.Test != "") != (a.text("test-group-sizes") != "") {
		errs = append(errs, errors.New("--group-sizes with --test needs --test-group-sizes, which needs both of them"))
	}
	return errs
}

// sized adds the column of queries to rows if files with the sizes of queries are given. rows
// are the rows of --test if test is set, and the training rows otherwise.
func (a training) sized(rows *engine.Dataset, test bool) *engine.Dataset {
	flag := "group-sizes"
	if test {
		flag = "test-group-sizes"
	}
	file := a.text(flag)
	if file == "" || rows.Poisoned() {
		return rows
	}
	sizes := operators.ReadCSV(rows.Builder(), file, operators.CSVOptions{Columns: []operators.Column{{Name: "size", Type: "int64"}}, TrimSpace: true})
	return gbdt.WithGroups(rows, sizes, sizedGroup).Named("--" + flag)
}

// group returns the name of the column of queries, or "" if there is none.
func (a training) group(schema *arrow.Schema) string {
	switch group := a.text("group"); {
	case a.text("group-sizes") != "":
		return sizedGroup
	case group == "" && a.target() == model.Rank && schema.HasField("qid"):
		return "qid"
	default:
		return group
	}
}
