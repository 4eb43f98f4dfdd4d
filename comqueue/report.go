package comqueue

import (
	"fmt"
	"slices"

	"github.com/superstep-ml/superstep/internal/kernel"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// fold is the operation that folds reported values of shards.
type fold int

const (
	foldSum fold = iota
	foldMax
)

// String returns the name of the method that reports values with this operation.
func (f fold) String() string {
	if f == foldMax {
		return "ReportMax"
	}
	return "ReportSum"
}

// merge folds two values.
func (f fold) merge(left, right float64) float64 {
	if f == foldMax {
		return max(left, right)
	}
	return left + right
}

// reports gathers the values that the subtasks of one process report per shard. A subtask
// writes only to its own element of subtasks, only to the series of the superstep's parity, and
// only from the stages of a superstep. Subtask 0 reads the series of all subtasks after the
// verdict of the superstep: then every subtask has finished writing, and no subtask writes to
// the same parity again before subtask 0 arrives at the next verdict. So no lock is needed. If
// the subtasks are in several processes, each subtask reads only its own element, and
// reportExchange sends the values to subtask 0.
type reports struct {
	shards   int
	ranges   []sharding.Range
	subtasks []reporter

	// Only subtask 0's goroutine uses the following fields.
	names   []string
	entries []sharding.Entry[float64]
	plain   []plainReport           // values of Report that settle has not dropped yet
	folded  map[string]foldedReport // name -> latest superstep in which shards reported values
}

// plainReport is a value that subtask 0 reported directly.
type plainReport struct {
	name string
	step int
}

// foldedReport says in which superstep values of shards were folded, and by which operation.
type foldedReport struct {
	step int
	fold fold
}

// reporter holds the reports of one subtask.
type reporter struct {
	step   int // 0 outside of supersteps
	series [2][]reported
}

// reported holds the values of a series from one subtask in one superstep.
type reported struct {
	name   string
	fold   fold
	last   int // shard whose value was added last; -1 if no value was added
	folder *sharding.Folder[float64]
}

func newReports(shards int, subtasks int) *reports {
	r := &reports{shards: shards, ranges: make([]sharding.Range, subtasks), subtasks: make([]reporter, subtasks), folded: map[string]foldedReport{}}
	for i := range r.ranges {
		r.ranges[i] = sharding.Split(shards, subtasks, i)
	}
	return r
}

// begin starts a superstep on a subtask.
func (r *reports) begin(subtask, step int) {
	own := &r.subtasks[subtask]
	own.step = step
	series := own.series[step&1]
	for i := range series {
		series[i].folder.Reset(r.ranges[subtask])
		series[i].last = -1
	}
}

// end marks that the subtask has done its last superstep.
func (r *reports) end(subtask int) { r.subtasks[subtask].step = 0 }

// add records a shard's value.
func (r *reports) add(subtask int, name string, f fold, shard int, value float64) error {
	own := &r.subtasks[subtask]
	if own.step == 0 {
		return fmt.Errorf("report %q: values of shards are reported from the stages of a superstep, not before or after them", name)
	}
	series := &own.series[own.step&1]
	i := slices.IndexFunc(*series, func(s reported) bool { return s.name == name })
	if i < 0 {
		i = len(*series)
		*series = append(*series, reported{
			name: name, fold: f, last: -1,
			folder: sharding.NewFolder(r.ranges[subtask], f.merge, nil),
		})
	}
	s := &(*series)[i]
	switch {
	case !r.ranges[subtask].Contains(shard):
		return fmt.Errorf("report %q of shard %d: subtask %d owns shards %d to %d", name, shard, subtask, r.ranges[subtask].Lo, r.ranges[subtask].Hi-1)
	case s.fold != f:
		return mixedFolds(name)
	case subtask == 0 && r.isPlain(name, own.step):
		return mixedReports(name, f, own.step)
	case shard <= s.last:
		return fmt.Errorf("report %q of shard %d after shard %d: report each shard at most once a superstep, in increasing order", name, shard, s.last)
	}
	s.last = shard
	s.folder.Push(shard, value)
	return nil
}

func mixedFolds(name string) error {
	return fmt.Errorf("report %q: both ReportSum and ReportMax are used under this name", name)
}

func mixedReports(name string, f fold, step int) error {
	return fmt.Errorf("report %q: both Report and %v are used under this name in superstep %d: one would hide the other, so give them two names", name, f, step)
}

// note records that subtask 0 reports a value directly, in a superstep or after the last one.
func (r *reports) note(name string, step int) error {
	series := r.subtasks[0].series[step&1]
	if r.subtasks[0].step != 0 {
		for i := range series {
			if s := &series[i]; s.name == name && s.last >= 0 {
				return mixedReports(name, s.fold, step)
			}
		}
	}
	if of, ok := r.folded[name]; ok && of.step == step {
		return mixedReports(name, of.fold, step)
	}
	if !r.isPlain(name, step) {
		r.plain = append(r.plain, plainReport{name, step})
	}
	return nil
}

// isPlain reports whether subtask 0 has reported a value of the name directly in a superstep.
func (r *reports) isPlain(name string, step int) bool {
	return slices.Contains(r.plain, plainReport{name, step})
}

// admit records that the values of shards of a superstep were folded. It returns an error if a
// directly reported value has the same name.
func (r *reports) admit(name string, f fold, step int) error {
	if r.isPlain(name, step) {
		return mixedReports(name, f, step)
	}
	r.folded[name] = foldedReport{step, f}
	return nil
}

// foldedIn returns the series that were folded over shards in a superstep.
func (r *reports) foldedIn(step int) map[string]fold {
	names := make(map[string]fold)
	for name, of := range r.folded {
		if of.step == step {
			names[name] = of.fold
		}
	}
	return names
}

// refold restores the result of foldedIn in a new gang.
func (r *reports) refold(names map[string]fold, step int) {
	for name, f := range names {
		r.folded[name] = foldedReport{step, f}
	}
}

// settle forgets the values that were reported directly up to a superstep. It is called when
// the values of shards up to that superstep have been folded, so that no name can conflict any
// more.
func (r *reports) settle(step int) {
	r.plain = slices.DeleteFunc(r.plain, func(p plainReport) bool { return p.step <= step })
}

// flush folds the superstep's values over all subtasks and calls report for each name, in the
// order of names. It is called on subtask 0.
func (r *reports) flush(step int, report func(name string, step int, value float64)) error {
	r.names = r.names[:0]
	for t := range r.subtasks {
		for i := range r.subtasks[t].series[step&1] {
			if s := &r.subtasks[t].series[step&1][i]; s.last >= 0 && !slices.Contains(r.names, s.name) {
				r.names = append(r.names, s.name)
			}
		}
	}
	slices.Sort(r.names)
	for _, name := range r.names {
		value, kind, err := r.total(step, name)
		if err == nil {
			err = r.admit(name, kind, step)
		}
		if err != nil {
			return err
		}
		report(name, step, value)
	}
	r.settle(step)
	return nil
}

// total folds the values of one series up the tree over shards. It returns the result and the
// operation.
func (r *reports) total(step int, name string) (float64, fold, error) {
	r.entries = r.entries[:0]
	var kind fold
	for t := range r.subtasks {
		for i := range r.subtasks[t].series[step&1] {
			s := &r.subtasks[t].series[step&1][i]
			if s.name != name || s.last < 0 {
				continue
			}
			if len(r.entries) > 0 && s.fold != kind {
				return 0, kind, mixedFolds(name)
			}
			kind = s.fold
			r.entries = append(r.entries, s.folder.Forest()...)
		}
	}
	value, _, err := sharding.MergeForests(r.shards, r.entries, kind.merge)
	return kernel.OneNaNOf(value), kind, err
}
