//go:build !race

package builtin_test

import (
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Text that is missing is an error where missing values are, and no category.
func TestMissingText(t *testing.T) {
	w := newWorkplace(t)
	w.write("t.csv", "c,y\n"+strings.Repeat(",1\nx,0\nz,0\nz,1\n", 10))
	const train = "train logistic --input t.csv --label y --l2 0.1 --encode --parallelism 1 --if-exists replace --model m.json "
	w.fails(1, train, `t.csv:2: column "c": it is null; --missing fill puts a value in its place, --missing skip leaves such rows out`)
	w.fails(1, "train kmeans --k 2 --input t.csv --encode --parallelism 1 --model k.json --features c", `t.csv:2: column "c": it is null`)

	// Prediction refuses what training did.
	w.write("full.csv", "c,y\n"+strings.Repeat("x,0\nx,0\nx,1\nz,0\nz,1\nz,1\nz,1\nz,1\n", 10))
	w.ok(strings.Replace(train, "t.csv", "full.csv", 1))
	w.fails(1, "predict --model m.json --input t.csv --output p.csv --parallelism 1", `t.csv:2: column "c": it is null`)

	// A value that training has not seen counts as the average of those that it has, whichever
	// of them has no component of its own: 3/8 of the rows have x and 5/8 z.
	w.write("new.csv", "c\nx\nz\nOslo\n")
	w.ok("predict --model m.json --input new.csv --output p.csv")
	rows := w.table("p.csv")
	var logits []float64
	for _, row := range rows {
		p, err := strconv.ParseFloat(row["probability_1"], 64)
		require.NoError(t, err)
		logits = append(logits, logit(p))
	}
	require.InDelta(t, 3.0/8*logits[0]+5.0/8*logits[1], logits[2], 1e-9)
	require.Greater(t, logits[1]-logits[2], 0.1, "not the last category")
}

func logit(p float64) float64 { return math.Log(p / (1 - p)) }
