//go:build !race

package builtin_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestInfiniteCellsAreNamed requires that an error about an infinite number names the file, the
// line and the column, even if the model transforms its columns before it predicts.
func TestInfiniteCellsAreNamed(t *testing.T) {
	w := newTestDir(t)
	w.write("t.csv", "a,c,b,y\n1,u,2,0\n2,v,1,1\n3,u,4,0\n4,v,1,1\n5,u,0,1\n,v,2,0\n")
	w.write("full.csv", "a,c,b,y\n1,u,2,0\n2,v,1,1\n3,u,4,0\n4,v,1,1\n5,u,0,1\n")
	w.write("bad.csv", "a,c,b,y\n1,u,2,0\n,v,-inf,1\n3,u,1,1\n")
	const cell = `bad.csv:3: column "b": it is -Inf`
	const cure = "; leave such rows out of the file"
	for _, train := range []string{"linear --encode --missing fill", "logistic --l2 1 --encode --missing fill", "naivebayes --encode --missing fill",
		"mlp --task regression --max-iter 2 --encode --missing fill", "kmeans --k 2 --missing fill --features a,b"} {
		label := " --label y"
		w.ok("train " + train + label + " --input t.csv --model m.json --if-exists replace")
		w.fails(1, "predict --model m.json --input bad.csv --output p.csv", cell+cure)
		w.fails(1, "evaluate --model m.json --input bad.csv --label y", cell+cure)
		algorithm := strings.ReplaceAll(train, " --missing fill", "")
		w.fails(1, "train "+algorithm+label+" --missing fill --input t.csv --test bad.csv --model m.json --if-exists replace", `bad.csv:3: column "b": it is -Inf`)
		w.fails(1, "train "+algorithm+label+" --missing skip --input full.csv --test bad.csv --model m.json --if-exists replace", `bad.csv:3: column "b": it is -Inf`)
		w.write("worse.csv", "a,c,b,y\n1,u,2,0\n2,v,+inf,1\n3,u,1,1\n")
		w.fails(1, "train "+algorithm+label+" --input worse.csv --model m.json --if-exists replace", `worse.csv:3: column "b": it is +Inf; --missing skip leaves such rows out`)
	}
	// Trees accept infinite numbers.
	w.ok("train forest --task classification --encode --missing fill --trees 2 --label y --input t.csv --model m.json --if-exists replace")
	w.ok("predict --model m.json --input bad.csv --output p.csv")
}

// TestLargeFeaturesAreNamed requires that an error about overflowing sums names only columns of
// the file, and not the column of feature vectors that training makes.
func TestLargeFeaturesAreNamed(t *testing.T) {
	w := newTestDir(t)
	w.write("big.csv", "a,b\n1,2\n1e308,1\n1e308,1\n1.7e308,2\n")
	for _, algorithm := range []string{"kmeans", "gmm"} {
		told := w.fails(1, "train "+algorithm+" --k 2 --input big.csv --model m.json", "the features")
		require.NotContains(t, told, `"features"`)
		require.Contains(t, told, "down")
	}
}

// TestInfiniteRowsLeftOut requires that warnings count rows that are left out because of
// infinite numbers separately from rows with missing values, except for LibSVM files.
func TestInfiniteRowsLeftOut(t *testing.T) {
	w := newTestDir(t)
	w.write("some.csv", "a,c,y\n1,u,0\n2,v,1\n3,u,0\ninf,v,1\n,u,1\n5,u,1\n-inf,u,0\n,u,1\n7,v,1\n-inf,v,\n")
	for algorithm, want := range map[string]string{
		"logistic --l2 1 --features a":                   "3 rows with missing values, and 2 with infinite ones, left out of training",
		"logistic --l2 1 --encode":                       "3 rows with missing values, and 2 with infinite ones, left out of training",
		"kmeans --k 2 --features a":                      "2 rows with missing values, and 3 with infinite ones, left out of training",
		"gbdt --objective logistic --min-child-weight 0": "3 rows with missing values left out of training",
	} {
		_, notes := w.warned("train " + algorithm + " --label y --missing skip --input some.csv --model m.json --if-exists replace")
		require.Contains(t, notes, want, algorithm)
	}
	w.write("some.libsvm", "0 1:1 2:3\n1 1:2 2:nan\n1 1:inf 2:1\n0 1:1 2:2\n1 1:3 2:1\n")
	_, told := w.warned("train logistic --l2 1 --missing skip --input some.libsvm --model m.json --if-exists replace")
	require.Contains(t, told, "2 rows with missing or infinite values left out of training")
	w.write("missing.csv", "a,y\n1,0\n2,1\n3,0\n,1\n5,1\n")
	_, notes := w.warned("train logistic --l2 1 --label y --missing skip --input missing.csv --model m.json --if-exists replace")
	require.Contains(t, notes, "1 row with missing values left out of training")
}
