package interop

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/algorithms/interchange/lightgbm"
)

func lightgbmPredictions(m *lightgbm.Model, rows [][]float64) []float64 {
	var all []float64
	for _, row := range rows {
		made := margins(m.Ensemble, row)
		m.Transform(made, made)
		all = append(all, made...)
	}
	return all
}

// rawScores returns raw scores as LightGBM computes them: sums over the trees. If the model
// averages its trees, the base score is added once per tree. Otherwise it is added once.
func rawScores(m *lightgbm.Model, rows [][]float64) []float64 {
	all := allMargins(m.Ensemble, rows)
	if m.Ensemble.Average {
		most := make([]int, m.Ensemble.Outputs)
		for _, t := range m.Ensemble.Trees {
			for o := range most {
				if t.Values != nil || int(t.Output) == o {
					most[o]++
				}
			}
		}
		for i := range all {
			all[i] *= float64(slices.Max(most))
		}
	}
	return all
}

// unknown reports whether an answer is from a LightGBM version before 3 that does not know an
// objective because the objective had another name in that version.
func unknown(a answer, objective string) bool {
	return objective == "rank_xendcg" && strings.Contains(a.Error, "Unknown objective type name")
}

func lightgbmModels(t *testing.T, r *rand.Rand) map[string]*lightgbm.Model {
	models := map[string]*lightgbm.Model{}
	add := func(name, objective string, f drawing, change ...func(*lightgbm.Model)) {
		f.zeros = true
		m, err := lightgbm.New(f.draw(r), objective, f.outputs)
		require.NoError(t, err)
		for _, c := range change {
			c(m)
		}
		models[name] = m
	}
	for _, name := range lightgbm.Objectives() {
		f := drawing{trees: 5, outputs: 1, base: []float64{0.3}}
		if name == "multiclass" || name == "multiclassova" {
			f.trees, f.outputs, f.base = 7, 3, []float64{0.1, -0.4, 0.25}
		}
		add(name, name, f)
	}
	one := []float64{-0.7}
	add("none", "", drawing{trees: 5, outputs: 1, base: one})
	add("sigmoid", "binary", drawing{trees: 5, outputs: 1, base: one}, func(m *lightgbm.Model) { m.Parameters = map[string]string{"sigmoid": "0.6"} })
	add("sqrt", "regression", drawing{trees: 5, outputs: 1, base: one}, func(m *lightgbm.Model) { m.Parameters = map[string]string{"sqrt": ""} })
	add("single", "regression", drawing{trees: 25, outputs: 1, single: true, base: one})
	add("weights", "regression", drawing{trees: 6, outputs: 1, weights: true, base: one})
	add("average", "regression", drawing{trees: 9, outputs: 1, average: true, base: one})
	add("average classes", "multiclass", drawing{trees: 8, outputs: 3, average: true, base: []float64{1, 2, 3}})
	add("vectors", "multiclass", drawing{trees: 4, outputs: 3, vectors: true, average: true, base: []float64{0, 0, 0}})
	add("no trees", "regression", drawing{outputs: 1, base: one})
	return models
}

// TestLightGBMReadsOurs requires that models written by this module give the same predictions
// in LightGBM.
func TestLightGBMReadsOurs(t *testing.T) {
	for _, python := range pythons(t, "lightgbm") {
		r := rand.New(rand.NewPCG(5, 6))
		rows := drawRows(r, 60, false)
		rows[0][0], rows[1][1], rows[2][2], rows[3][3] = 0, 0, math.Inf(1), math.Inf(-1)
		rows[4][4], rows[5][5], rows[6][4] = -1, 500, 1e8
		dir := t.TempDir()
		models := lightgbmModels(t, r)
		names := slices.Sorted(maps.Keys(models))
		var tasks []task
		for _, name := range names {
			path := filepath.Join(dir, fileName(name)+".txt")
			require.NoError(t, models[name].Save(path))
			tasks = append(tasks, task{Library: "lightgbm", Do: "predict", Model: path, Rows: cells(rows)})
			back, err := lightgbm.Load(path)
			require.NoError(t, err, path)
			requireNear(t, allMargins(models[name].Ensemble, rows), allMargins(back.Ensemble, rows), 1e-12, path+" read back")
		}
		for i, a := range work(t, python, tasks) {
			what := a.Version + " " + tasks[i].Model
			if unknown(a, names[i]) {
				continue
			}
			require.Empty(t, a.Error, what)
			requireNear(t, rawScores(models[names[i]], rows), a.Margin, 1e-12, what+" raw scores")
			requireNear(t, lightgbmPredictions(models[names[i]], rows), a.Prediction, 1e-12, what+" predictions")
			if i == 0 {
				t.Logf("LightGBM %s read %d files", a.Version, len(tasks))
			}
		}
	}
}

// TestLightGBMThereAndBack requires that models trained by LightGBM give the same predictions
// in this module, and again in LightGBM after this module has written them.
func TestLightGBMThereAndBack(t *testing.T) {
	for _, python := range pythons(t, "lightgbm") {
		r := rand.New(rand.NewPCG(7, 8))
		rows := drawRows(r, 300, false)
		for i := range rows {
			if i%4 == 0 {
				rows[i][i/4%numbers] = 0
			}
		}
		dir := t.TempDir()
		var tasks []task
		for _, objective := range append(lightgbm.Objectives(), "dart", "rf", "zero", "none", "onehot", "sparse") {
			if objective == "custom" {
				continue // this objective needs a function in Python
			}
			k := task{Library: "lightgbm", Do: "train", Rows: cells(rows), Rounds: 4, Categorical: []int{4, 5}, Model: filepath.Join(dir, objective+".txt")}
			k.Params = map[string]any{"objective": objective, "num_leaves": 8, "min_data_in_leaf": 5, "min_data_per_group": 5, "max_cat_to_onehot": 1, "seed": 1}
			switch objective {
			case "dart":
				k.Params["objective"], k.Params["boosting"], k.Params["drop_rate"] = "regression", "dart", 0.5
			case "rf":
				k.Params["objective"], k.Params["boosting"], k.Params["bagging_freq"], k.Params["bagging_fraction"] = "binary", "rf", 1, 0.6
			case "zero":
				k.Params["objective"], k.Params["zero_as_missing"] = "regression", true
			case "none":
				k.Params["objective"], k.Params["use_missing"] = "regression", false
			case "onehot":
				k.Params["objective"], k.Params["max_cat_to_onehot"] = "regression", 100
			case "sparse":
				k.Params["objective"], k.Sparse = "regression", true
			case "multiclass", "multiclassova":
				k.Params["num_class"] = 3
			}
			k.Label = labels(rows, fmt.Sprint(k.Params["objective"]))
			if objective == "lambdarank" || objective == "rank_xendcg" {
				k.Group = []int{100, 80, 120}
			}
			tasks = append(tasks, k)
		}
		there := work(t, python, tasks)
		var again []task
		var of []int
		for i, a := range there {
			what := a.Version + " " + tasks[i].Model
			if unknown(a, fmt.Sprint(tasks[i].Params["objective"])) {
				continue
			}
			require.Empty(t, a.Error, what)
			m, err := lightgbm.Load(tasks[i].Model)
			require.NoError(t, err, what)
			at := rows
			if tasks[i].Sparse { // missing values in sparse rows mean 0
				at = nil
				for _, row := range rows {
					filled := slices.Clone(row)
					for f, v := range filled {
						if v != v {
							filled[f] = 0
						}
					}
					at = append(at, filled)
				}
			}
			requireNear(t, a.Margin, rawScores(m, at), 1e-12, what+" raw scores")
			requireNear(t, a.Prediction, lightgbmPredictions(m, at), 1e-12, what+" predictions")
			require.Len(t, m.Ensemble.Trees, a.Rounds, what)
			back := tasks[i]
			back.Do, back.Model = "predict", filepath.Join(dir, "back-"+filepath.Base(tasks[i].Model))
			require.NoError(t, m.Save(back.Model))
			again, of = append(again, back), append(of, i)
		}
		for i, a := range work(t, python, again) {
			require.Empty(t, a.Error, again[i].Model)
			requireNear(t, there[of[i]].Margin, a.Margin, 1e-12, a.Version+" "+again[i].Model+" raw scores")
			requireNear(t, there[of[i]].Prediction, a.Prediction, 1e-12, a.Version+" "+again[i].Model+" predictions")
		}
	}
}
