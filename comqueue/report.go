package comqueue

import (
	"fmt"
	"slices"
	"sync"

	"github.com/superstep-ml/superstep/shared"
)

// fold is how reported values of shards become one.
type fold int

const (
	foldSum fold = iota
	foldMax
)

// merge folds two values.
func (f fold) merge(left, right float64) float64 {
	if f == foldMax {
		return max(left, right)
	}
	return left + right
}

// reports gathers what the subtasks of one process report per shard. A subtask
// writes only its own half, the one of the superstep's parity; subtask 0 reads
// all of them after the verdict of the superstep, when every subtask has
// finished writing and none can come round to the same parity before subtask 0
// arrives at the next verdict. So no lock is needed on the way.
type reports struct {
	shards   int
	ranges   []shared.Range
	subtasks [][2][]reported // by subtask and parity
	parity   []int           // by subtask
	scratch  []shared.Entry[float64]
	misuse   sync.Once
	err      error
}

// reported is a series' values of one subtask in one superstep.
type reported struct {
	name   string
	fold   fold
	last   int // shard added last
	folder *shared.Folder[float64]
}

func newReports(shards int, subtasks int) *reports {
	r := &reports{
		shards:   shards,
		ranges:   make([]shared.Range, subtasks),
		subtasks: make([][2][]reported, subtasks),
		parity:   make([]int, subtasks),
	}
	for i := range r.ranges {
		r.ranges[i] = shared.Split(shards, subtasks, i)
	}
	return r
}

// begin starts a superstep on a subtask.
func (r *reports) begin(subtask, step int) {
	r.parity[subtask] = step & 1
	series := r.subtasks[subtask][step&1]
	for i := range series {
		series[i].folder.Reset(r.ranges[subtask])
		series[i].last = -1
	}
}

// add records a shard's value.
func (r *reports) add(subtask int, name string, f fold, shard int, value float64) {
	series := &r.subtasks[subtask][r.parity[subtask]]
	i := slices.IndexFunc(*series, func(s reported) bool { return s.name == name })
	if i < 0 {
		i = len(*series)
		*series = append(*series, reported{
			name: name, fold: f, last: -1,
			folder: shared.NewFolder(r.ranges[subtask], f.merge, nil),
		})
	}
	s := &(*series)[i]
	if shard <= s.last || !r.ranges[subtask].Contains(shard) || s.fold != f {
		r.misuse.Do(func() {
			r.err = fmt.Errorf("report %q of shard %d after shard %d: report each shard that subtask %d owns (%d to %d) at most once a superstep, in increasing order and with one kind of fold",
				name, shard, s.last, subtask, r.ranges[subtask].Lo, r.ranges[subtask].Hi-1)
		})
		return
	}
	s.last = shard
	s.folder.Push(shard, value)
}

// flush folds the superstep's values over all subtasks and hands them out in the
// order in which the lowest subtask first used their names. Called on subtask 0.
func (r *reports) flush(step int, report func(name string, step int, value float64)) error {
	for subtask := range r.subtasks {
		for i := range r.subtasks[subtask][step&1] {
			s := &r.subtasks[subtask][step&1][i]
			if r.seenBefore(subtask, step, s.name) {
				continue
			}
			r.scratch = r.scratch[:0]
			for t := subtask; t < len(r.subtasks); t++ {
				r.scratch = r.appendForest(r.scratch, t, step, s.name)
			}
			value, ok, err := shared.MergeForests(r.shards, r.scratch, s.fold.merge)
			if err != nil {
				return err
			}
			if ok {
				report(s.name, step, value)
			}
		}
	}
	return r.err
}

// seenBefore reports whether a lower subtask has the series too.
func (r *reports) seenBefore(subtask, step int, name string) bool {
	for t := range subtask {
		if slices.ContainsFunc(r.subtasks[t][step&1], func(s reported) bool { return s.name == name }) {
			return true
		}
	}
	return false
}

// appendForest appends the entries of one subtask's series.
func (r *reports) appendForest(dst []shared.Entry[float64], subtask, step int, name string) []shared.Entry[float64] {
	for i := range r.subtasks[subtask][step&1] {
		if s := &r.subtasks[subtask][step&1][i]; s.name == name {
			return append(dst, s.folder.Forest()...)
		}
	}
	return dst
}
