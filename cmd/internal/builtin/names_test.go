//go:build !race

package builtin_test

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestNamesOfComponents requires that components of features have distinct names even if columns
// and values contain "=". A name must have quotes only if it would otherwise equal another
// name.
func TestNamesOfComponents(t *testing.T) {
	w := newTestDir(t)
	w.write("t.csv", "k,k=p,m=x,m,c,y\np=q,q,1,x,u,1\nr,q,2,z,v,2\np=q,s,3,x,v=1,3\nr,s,5,z,u,5\nz,z,1,z,v,1\n")
	w.ok("train linear --l2 1 --encode --input t.csv --label y --model m.json")
	var file struct {
		Stages []struct {
			Tables []struct {
				Title string
				Rows  [][]any
			}
		}
	}
	w.json("inspect m.json --output json", &file)
	var names []any
	for _, table := range file.Stages[len(file.Stages)-1].Tables {
		if table.Title == "coefficients" {
			for _, row := range table.Rows {
				names = append(names, row[0])
			}
		}
	}
	require.Equal(t, []any{`k="p=q"`, "k=r", `"k=p"=q`, "k=p=s", `"m=x"`, "m=x", "c=u", "c=v", "(intercept)"}, names)
}
