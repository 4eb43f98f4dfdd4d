package comqueue

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"
	"time"

	"github.com/superstep-ml/superstep/collective"
	"github.com/superstep-ml/superstep/internal/kernel"
	"github.com/superstep-ml/superstep/shared"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// reportExchange sends the values that subtasks report per shard to subtask 0, if the subtasks
// are in several processes. Subtask 0 folds them up the tree over shards, as reports does
// within one process, so the results are the same, but they arrive some supersteps later. The
// exchange happens in rounds. As a round costs two collectives even if nothing was reported,
// rounds are about roundTime apart, but at least one superstep and at most maxLag supersteps.
// So reports of slow supersteps are shown at once, and fast supersteps are not slowed down.
// Subtask 0 measures the time and announces in each round when the next round is. The first and
// the last superstep always have a round, and those after which the state is saved.
type reportExchange struct {
	unsent    []shardReport // reports of this subtask that are not yet sent
	nextRound int           // superstep of the next round
	lastRound int           // superstep of the latest round

	// Only subtask 0 uses the following fields.
	lastRoundTime time.Time // time of the latest round
	undelivered   []shardReport
	entries       []sharding.Entry[float64]
}

const (
	roundTime = 100 * time.Millisecond
	maxLag    = 64
)

// shardReport is the value of a series at a node of the tree over shards.
type shardReport struct {
	Step         int
	Name         string
	Fold         fold
	Level, Index int
	Value        float64
}

// reportRound is the message of a subtask in a round.
type reportRound struct {
	Reports []shardReport
	Next    int // supersteps until the next round; set by subtask 0
}

// begin starts the measurement of time, before the gang's first superstep.
func (m *reportExchange) begin(step int) {
	m.nextRound, m.lastRound, m.lastRoundTime = step, step-1, time.Now()
}

// post sends the reports of a superstep to subtask 0. Unless now is true, it may send them in a
// later round together with those of other supersteps.
func (b *body) post(step int, now bool) error {
	b.reportExchange.collect(b.reports, b.subtask, step)
	if step < b.reportExchange.nextRound && !now {
		return nil
	}
	return b.reportExchange.round(b, step)
}

// collect stores the subtask's reports of a superstep for the next round.
func (m *reportExchange) collect(r *reports, subtask, step int) {
	series := r.subtasks[subtask].series[step&1]
	for i := range series {
		s := &series[i]
		if s.last < 0 {
			continue
		}
		for _, e := range s.folder.Forest() {
			m.unsent = append(m.unsent, shardReport{
				Step: step, Name: s.name, Fold: s.fold, Level: e.Node.Level, Index: e.Node.Index, Value: e.Value,
			})
		}
	}
}

// round sends the stored reports and agrees on the superstep of the next round.
func (m *reportExchange) round(b *body, step int) error {
	mine := reportRound{Reports: m.unsent}
	if b.subtask == 0 {
		now := time.Now()
		stepTime := max(now.Sub(m.lastRoundTime)/time.Duration(step-m.lastRound), 1)
		mine.Next = int(min(max(roundTime/stepTime, 1), maxLag))
		m.lastRoundTime = now
	}
	all, _, err := collective.AllReduceObject(b.comm, &collective.ObjectReduction[reportRound]{
		Name: "reports of shards", Codec: roundCodec{reports: b.subtask == 0}, Value: &mine, Merge: mergeRounds, Context: b.context.Context(),
	})
	if err != nil {
		return err
	}
	m.unsent, m.lastRound, m.nextRound = m.unsent[:0], step, step+max(all.Next, 1)
	if b.subtask == 0 {
		m.undelivered = append(m.undelivered, all.Reports...)
	}
	return nil
}

// roundCodec encodes a reportRound: the field Next, and then the reports. All subtasks receive
// all messages, but only subtask 0 decodes the reports.
type roundCodec struct{ reports bool }

var reportsCodec = shared.Msgpack[[]shardReport]()

// Append implements shared.Codec.
func (roundCodec) Append(dst []byte, l reportRound) ([]byte, error) {
	dst = binary.AppendUvarint(dst, uint64(l.Next))
	if len(l.Reports) == 0 {
		return dst, nil
	}
	return reportsCodec.Append(dst, l.Reports)
}

// Decode implements shared.Codec.
func (c roundCodec) Decode(src []byte) (l reportRound, err error) {
	next, n := binary.Uvarint(src)
	if n <= 0 || next > maxLag {
		return l, fmt.Errorf("a round of reports of %d bytes does not begin with the number of supersteps to the next", len(src))
	}
	l.Next = int(next)
	if src = src[n:]; c.reports && len(src) > 0 {
		l.Reports, err = reportsCodec.Decode(src)
	}
	return l, err
}

func mergeRounds(left, right reportRound) reportRound {
	return reportRound{Reports: append(left.Reports, right.Reports...), Next: max(left.Next, right.Next)}
}

// deliver folds the received values and calls report for each superstep and name, in that order.
// It is called on subtask 0.
func (m *reportExchange) deliver(r *reports, report func(name string, step int, value float64)) error {
	slices.SortFunc(m.undelivered, func(a, b shardReport) int {
		return cmp.Or(cmp.Compare(a.Step, b.Step), cmp.Compare(a.Name, b.Name),
			cmp.Compare(a.node().Range().Lo, b.node().Range().Lo))
	})
	for rest := m.undelivered; len(rest) > 0; {
		first, n := rest[0], 1
		for n < len(rest) && rest[n].Step == first.Step && rest[n].Name == first.Name {
			n++
		}
		m.entries = m.entries[:0]
		for _, part := range rest[:n] {
			if part.Fold != first.Fold {
				return mixedFolds(first.Name)
			}
			m.entries = append(m.entries, sharding.Entry[float64]{Node: part.node(), Value: part.Value})
		}
		value, _, err := sharding.MergeForests(r.shards, m.entries, first.Fold.merge)
		if err != nil {
			return fmt.Errorf("report %q of superstep %d: %w", first.Name, first.Step, err)
		}
		if err := r.admit(first.Name, first.Fold, first.Step); err != nil {
			return err
		}
		report(first.Name, first.Step, kernel.OneNaNOf(value))
		rest = rest[n:]
	}
	m.undelivered = m.undelivered[:0]
	r.settle(m.lastRound)
	return nil
}

func (r *shardReport) node() sharding.Node { return sharding.Node{Level: r.Level, Index: r.Index} }
