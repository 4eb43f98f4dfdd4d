package builtin_test

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestRankingsAreMeasured requires that evaluate measures rankings whose scores are in a column
// or are computed by a model, and that it reports how NDCG treats queries without a relevant
// row. The expected values are the same as in TestFlatQueries in package evaluate.
func TestRankingsAreMeasured(t *testing.T) {
	w := newTestDir(t)
	w.write("lists.csv", "q,rel,s,x\na,1,1,1\na,0,2,2\nb,0,3,3\nb,0,4,4\n")
	var of struct {
		NDCG, MAP, MRR float64
		FlatAs         string  `json:"flat_as"`
		Flat           float64 `json:"flat_queries"`
	}
	const line = "evaluate --input lists.csv --kind ranking --group q --label rel --score s"
	for flags, want := range map[string]float64{"": 0.6309297535714574, " --flat one": 0.8154648767857287, " --flat zero": 0.3154648767857287} {
		w.json(line+" --output json"+flags, &of)
		require.InDelta(t, want, of.NDCG, 1e-12, flags)
		require.Equal(t, 0.5, of.MRR)
		require.Equal(t, 1.0, of.Flat)
	}
	require.Contains(t, w.ok(line), "left out, in ndcg: queries whose labels are all 0")
	w.json(line+" --at 1 --output json", &of)
	require.Zero(t, of.NDCG)
	w.fails(2, line+" --at 0", "--at is 0: want 1 to 16777216")

	w.write("more.libsvm", "1 qid:1 1:2\n0 qid:1 1:1\n0 qid:2 1:5\n1 qid:2 1:9\n")
	out := w.ok("train gbdt --objective lambdamart --input more.libsvm --rounds 3 --min-child-weight 0 --model m.json --test more.libsvm")
	require.Regexp(t, `(?m)^mrr +1$`, out)
	require.Regexp(t, `(?m)^ndcg +1$`, w.ok("evaluate --model m.json --input more.libsvm"))
	require.Regexp(t, `(?m)^rmse +`, w.ok("evaluate --model m.json --input more.libsvm --kind regression"))
}

// TestNothingToMeasure requires that the error about a file without rows names the file.
func TestNothingToMeasure(t *testing.T) {
	w := newTestDir(t)
	w.write("rows.csv", "x,y\n-2,0\n-1,0\n0,1\n1,0\n1,1\n2,1\n")
	w.write("none.csv", "x,y\n")
	w.write("none.libsvm", "")
	for _, algorithm := range []string{"linear", "logistic --l2 0.1", "gbdt --objective logistic --rounds 2", "forest --task regression --trees 2", "kmeans --k 2"} {
		w.fails(1, "train "+algorithm+" --input rows.csv --label y --model m.json --if-exists replace --test none.csv", "none.csv")
	}
	w.ok("train logistic --l2 0.1 --input rows.csv --label y --model m.json --if-exists replace")
	w.fails(1, "evaluate --model m.json --input none.csv --label y", "none.csv")
	w.fails(1, "evaluate --input none.csv --kind regression --prediction x --label y", "none.csv")
	w.fails(1, "evaluate --input none.csv --kind multiclass --prediction x --label y --types 'x=int64;y=int64'", "none.csv")
}
