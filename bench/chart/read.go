package main

import (
	"encoding/json"
	"fmt"
	"os"

	"github.com/superstep-ml/superstep/bench/internal/rounds"
)

// bar is the training time of a library as a multiple of Superstep's training time.
type bar struct {
	Library string
	What    string // what is trained
	Times   float64
	Of      int // what the time measures, one of the constants below
}

// What a time measures.
const (
	fromFile = iota
	inMemory
	numTimes
)

// bars reads the files that the flags name and returns their bars.
func (o *options) bars() (all []bar, err error) {
	for _, from := range []struct {
		path string
		read func(text []byte, threads int) ([]bar, error)
	}{{o.Alink, alinkBars}, {o.KMeans, kmeansBars}, {o.Trees, treesBars}} {
		if from.path == "" {
			continue
		}
		text, err := os.ReadFile(from.path)
		if err != nil {
			return nil, err
		}
		bars, err := from.read(text, o.Threads)
		if err == nil && len(bars) == 0 {
			err = fmt.Errorf("there is no line of another library with %d threads", o.Threads)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", from.path, err)
		}
		all = append(all, bars...)
	}
	for _, b := range all {
		if !(b.Times > 0 && b.Times < 1e6) {
			return nil, fmt.Errorf("%s takes %v times as long to train %s: that is no measurement", b.Library, b.Times, b.What)
		}
	}
	return all, nil
}

// titles maps the names of problems to their titles in the picture.
var titles = map[string]string{"kmeans": "k-means", "logistic": "logistic regression", "gbdt": "boosted trees"}

func alinkBars(text []byte, threads int) (all []bar, err error) {
	var tables []struct {
		Problem string
		Lines   []struct {
			Contestant string
			Threads    int
			Ratio      struct{ Wall float64 }
		}
	}
	if err := json.Unmarshal(text, &tables); err != nil {
		return nil, err
	}
	for _, t := range tables {
		for _, l := range t.Lines {
			if l.Contestant == "Alink" && l.Threads == threads {
				all = append(all, bar{l.Contestant, titles[t.Problem], l.Ratio.Wall, fromFile})
			}
		}
	}
	return all, nil
}

// kmeansBars returns a bar for scikit-learn, from the first table whose rows are a mixture of
// normal distributions. In each round it uses the time of the faster algorithm of scikit-learn.
func kmeansBars(text []byte, threads int) ([]bar, error) {
	var tables []struct {
		Shape struct{ Components int }
		Lines []struct {
			Contestant string
			Threads    int
			Rounds     []struct{ Pass float64 }
		}
	}
	if err := json.Unmarshal(text, &tables); err != nil {
		return nil, err
	}
	for _, t := range tables {
		if t.Shape.Components == 0 {
			continue
		}
		passes := map[string][]float64{}
		for _, l := range t.Lines {
			for _, r := range l.Rounds {
				if l.Threads == threads {
					passes[l.Contestant] = append(passes[l.Contestant], r.Pass)
				}
			}
		}
		ours, lloyd, elkan := passes["engine"], passes["scikit-learn"], passes["scikit-learn elkan"]
		if len(ours) == 0 || len(lloyd) != len(ours) || len(elkan) != len(ours) {
			return nil, nil
		}
		for i := range lloyd {
			lloyd[i] = min(lloyd[i], elkan[i])
		}
		return []bar{{"scikit-learn", titles["kmeans"], rounds.MedianRatio(lloyd, ours), inMemory}}, nil
	}
	return nil, nil
}

// libraries maps the names of other libraries in bench/trees to their names in the picture.
var libraries = map[string]string{"xgboost": "XGBoost", "lightgbm": "LightGBM"}

func treesBars(text []byte, threads int) (all []bar, err error) {
	var tables []struct {
		Problem string
		Lines   []struct {
			Library string
			Threads int
			Rounds  []struct{ Train float64 }
		}
	}
	if err := json.Unmarshal(text, &tables); err != nil {
		return nil, err
	}
	for _, t := range tables {
		var ours []float64
		for _, l := range t.Lines {
			if t.Problem != "dense" || l.Threads != threads {
				continue
			}
			var train []float64
			for _, r := range l.Rounds {
				train = append(train, r.Train)
			}
			if name := libraries[l.Library]; l.Library == "" {
				ours = train // Superstep's line comes before the other libraries' lines with the same number of threads
			} else if name != "" && len(train) == len(ours) {
				all = append(all, bar{name, titles["gbdt"], rounds.MedianRatio(train, ours), inMemory})
			}
		}
	}
	return all, nil
}
