package task

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/superstep-ml/superstep/engine/plan"
	"github.com/superstep-ml/superstep/shared"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// Retained is what a process keeps of a run that has failed, for the next run of the same graph in
// that process, which may have other parts and another parallelism:
//
//   - the rows of the inputs of queues, by shard, in the sessions of the queues;
//   - for each shard that an operator outside of queues has made, what the operator counted and
//     accumulated, so that the shard need not be made again if all who need its rows have them;
//   - the rows that all subtasks of a queue get from another queue, and the report of the other queue
//     in the process that had its subtask 0, or that was given the report. If that queue is left out, it
//     reports no counts of rows.
//
// Rows that operators emit in Finish depend on all shards of a subtask, so queues behind such operators
// keep nothing. Neither do those behind operators of which it is not known yet.
//
// Rows that a queue had moved to files are not kept, and neither are those of queues that had ended.
// A Retained is used by one run at a time. NewRetained returns one that has nothing.
type Retained struct {
	sessions *shared.Store

	mu      sync.Mutex
	left    bool // functions of a run may still use the rows
	job     string
	rows    map[string][]bool                 // by queue, then by shard
	read    map[string][]int64                // how many rows each shard had, by queue, then by shard
	sides   map[sideKey][]arrow.Record        // rows of queues that all subtasks of another queue read
	reports map[string]QueueReport            // of queues that have ended, in the process that had subtask 0
	made    map[plan.NodeID]map[int]madeShard // by operator, then by shard
	ends    map[plan.NodeID]bool              // of operators that have finished, not in one subtask: whether Finish has emitted rows
	keep    map[plan.NodeID]map[int]madeShard // of the current run: what it does not make again and reports
}

// madeShard is what an operator has counted and accumulated for a shard.
type madeShard struct {
	rowsIn, rowsOut int64
	counters        map[string]int64
	sums            map[string]float64
}

// NewRetained returns a Retained of a process that has not run anything.
func NewRetained() *Retained {
	return &Retained{
		sessions: shared.NewStore(), rows: make(map[string][]bool), read: make(map[string][]int64), reports: make(map[string]QueueReport),
		ends: make(map[plan.NodeID]bool), made: make(map[plan.NodeID]map[int]madeShard),
	}
}

// Close releases the rows, unless functions of a run were abandoned, which may still use them. No run may
// use the Retained any more.
func (k *Retained) Close() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.left {
		return nil
	}
	k.releaseSides()
	clear(k.rows)
	clear(k.reports)
	clear(k.read)
	clear(k.made)
	return k.sessions.Close(k.job)
}

// holding describes what a process has retained, for the other processes of the next run.
type holding struct {
	Rows    []heldRows `msgpack:"rows"`
	Sides   []sideKey  `msgpack:"sides"`
	Reports []string   `msgpack:"reports"` // queues whose reports the process has
	Made    []heldNode `msgpack:"made"`
	// Ends are operators that have emitted rows in Finish, and do not run in one subtask.
	Ends []plan.NodeID `msgpack:"ends"`
}

// heldRows are shards of which a process has the rows of a queue's inputs.
type heldRows struct {
	Queue  string           `msgpack:"queue"`
	Shards []sharding.Range `msgpack:"shards"`
}

// heldNode are shards that an operator has made in a process.
type heldNode struct {
	Node   plan.NodeID      `msgpack:"node"`
	Shards []sharding.Range `msgpack:"shards"`
}

// holdings is the codec of holding. It checks every length that it reads.
var holdings = shared.Msgpack[holding]()

// Held describes what is retained, for Worker.Continue in all processes of the next run. It is nil if
// there is nothing.
func (k *Retained) Held() ([]byte, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	var h holding
	for _, queue := range slices.Sorted(maps.Keys(k.rows)) {
		if ranges := rangesOf(k.rows[queue]); len(ranges) > 0 {
			h.Rows = append(h.Rows, heldRows{queue, ranges})
		}
	}
	for _, node := range slices.Sorted(maps.Keys(k.made)) {
		var ranges []sharding.Range
		for _, shard := range slices.Sorted(maps.Keys(k.made[node])) {
			ranges = addShard(ranges, shard)
		}
		h.Made = append(h.Made, heldNode{node, ranges})
	}
	for key := range k.sides {
		h.Sides = append(h.Sides, key)
	}
	slices.SortFunc(h.Sides, func(a, b sideKey) int {
		return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.To, b.To), cmp.Compare(a.Port, b.Port))
	})
	h.Reports = slices.Sorted(maps.Keys(k.reports))
	for _, node := range slices.Sorted(maps.Keys(k.ends)) {
		if k.ends[node] {
			h.Ends = append(h.Ends, node)
		}
	}
	if h.Rows == nil && h.Made == nil && h.Sides == nil && h.Reports == nil && h.Ends == nil {
		return nil, nil
	}
	return holdings.Append(nil, h)
}

// rangesOf returns the shards of a set as ranges, in order.
func rangesOf(set []bool) (ranges []sharding.Range) {
	for shard, in := range set {
		if in {
			ranges = addShard(ranges, shard)
		}
	}
	return ranges
}

// addShard adds a shard behind those of ranges.
func addShard(ranges []sharding.Range, shard int) []sharding.Range {
	if n := len(ranges); n > 0 && ranges[n-1].Hi == shard {
		ranges[n-1].Hi++
		return ranges
	}
	return append(ranges, sharding.Range{Lo: shard, Hi: shard + 1})
}

// decodeHolding decodes what Held returned in a process, and checks that it is of this plan.
func decodeHolding(p *plan.Plan, data []byte) (h holding, err error) {
	if len(data) == 0 {
		return h, nil
	}
	if h, err = holdings.Decode(data); err != nil {
		return h, err
	}
	check := func(ranges []sharding.Range) error {
		at := 0
		for _, r := range ranges {
			if r.Lo < at || r.Hi <= r.Lo || r.Hi > p.Shards {
				return fmt.Errorf("shards %v after shard %d, of %d", r, at, p.Shards)
			}
			at = r.Hi
		}
		return nil
	}
	for _, r := range h.Rows {
		if !slices.ContainsFunc(p.Queues, func(q plan.Queue) bool { return q.Name == r.Queue }) {
			err = fmt.Errorf("there is no queue %q", r.Queue)
		}
		err = errors.Join(err, check(r.Shards))
	}
	for _, n := range h.Made {
		if n.Node < 0 || int(n.Node) >= len(p.Nodes) {
			err = fmt.Errorf("there is no node %d", n.Node)
		}
		err = errors.Join(err, check(n.Shards))
	}
	for _, node := range h.Ends {
		if node < 0 || int(node) >= len(p.Nodes) {
			err = errors.Join(err, fmt.Errorf("there is no node %d", node))
		}
	}
	return h, err
}

// begin is called when a run begins, which reports nothing of earlier runs unless it continues.
func (k *Retained) begin(job string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.job, k.keep = job, nil
}

// abandon is called when functions of a run have not returned.
func (k *Retained) abandon() {
	if k == nil {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.left = true
}

// take is called before a run opens a queue, whose Loops take over the rows that are in its session.
func (k *Retained) take(queue string) {
	if k == nil {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.rows, queue)
	delete(k.reports, queue)
}

// AddReport adds the report of a queue that has ended, as Env.Closed got it in this or another process. It is
// called before Held.
func (k *Retained) AddReport(queue string, report []byte) error {
	r, err := queueReports.Decode(report)
	if err == nil && r.Name != queue {
		err = fmt.Errorf("it is that of queue %q", r.Name)
	}
	if err != nil {
		return fmt.Errorf("the report of queue %q: %w", queue, err)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.reports[queue] = r
	return nil
}

// reportOf returns the report of a queue that is left out.
func (k *Retained) reportOf(queue string) QueueReport {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.reports[queue]
}

// keeper returns the function with which the Loops of a queue say which rows they have left in their
// session, or nil if nothing is kept.
func (k *Retained) keeper(queue string) func(shards []bool) {
	if k == nil {
		return nil
	}
	return func(shards []bool) {
		k.mu.Lock()
		defer k.mu.Unlock()
		k.rows[queue] = shards
	}
}

// counted returns how many rows of its inputs a member of a queue has at the beginning, by shard and in
// total: those that are kept. It returns nil if nothing is kept.
func (k *Retained) counted(queue string, kept []bool, owned sharding.Range) (rows []int64, total int64) {
	if k == nil {
		return nil, 0
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	rows = make([]int64, owned.Hi)
	for shard := owned.Lo; shard < owned.Hi && kept != nil; shard++ {
		if kept[shard] && k.read[queue] != nil {
			rows[shard] = k.read[queue][shard]
			total += rows[shard]
		}
	}
	return rows, total
}

// harvest keeps what the subtasks of a run that has failed have made.
func (k *Retained) harvest(r *run) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.holdSides(r)
	k.holdReports(r)
	k.made = make(map[plan.NodeID]map[int]madeShard)
	for node, shards := range k.keep { // what an earlier run has made and this one did not make again
		k.made[node] = maps.Clone(shards)
	}
	k.forgetUnknown(r)
	clear(k.read)
	for _, g := range r.gangs {
		read := make([]int64, r.plan.Shards)
		for _, m := range g.members {
			copy(read[g.vertex.Ranges[m.index].Lo:], m.shardRows[g.vertex.Ranges[m.index].Lo:])
		}
		k.read[g.queue.Name] = read
	}
	for _, t := range r.subtasks {
		for _, m := range t.marks {
			for i, l := range t.links {
				if k.made[l.node.ID] == nil {
					k.made[l.node.ID] = make(map[int]madeShard)
				}
				made := m.links[i]
				made.sums = sumsOf(l.context.sums, m.shard)
				k.made[l.node.ID][m.shard] = made
			}
		}
	}
}

// forgetUnknown notes which operators emit rows in Finish, and forgets the rows of queues behind those that
// have not finished yet.
func (k *Retained) forgetUnknown(r *run) {
	unknown := make(map[plan.NodeID]bool)
	for _, t := range r.subtasks {
		if t.vertex.Queue != "" || t.makesNothing() {
			continue
		}
		for _, l := range t.links {
			switch {
			case l.operator == nil || l.node.Single:
			case l.ended:
				k.ends[l.node.ID] = k.ends[l.node.ID] || l.last
			default:
				unknown[l.node.ID] = true
			}
		}
	}
	for node := range unknown {
		if _, known := k.ends[node]; known {
			continue
		}
		for _, queue := range queuesBehind(r.plan, node) {
			delete(k.rows, queue)
		}
	}
}

// sumsOf returns the sums of a shard by name.
func sumsOf(all map[string]*shardSums, shard int) map[string]float64 {
	sums := make(map[string]float64)
	for name, s := range all {
		if at := shard - s.within.Lo; s.present[at] {
			sums[name] = s.sums[at]
		}
	}
	return sums
}

// markShard notes what the operators of the chain have counted for a shard that they have made, if
// the process may keep it.
func (t *subtask) markShard(shard int) {
	if t.run.env.Retained == nil || t.vertex.Queue != "" {
		return
	}
	mark := shardMark{shard: shard, links: make([]madeShard, len(t.links))}
	if t.counted == nil {
		t.counted = make([]madeShard, len(t.links))
	}
	for i, l := range t.links {
		before := &t.counted[i]
		m := madeShard{rowsIn: l.rowsIn - before.rowsIn, rowsOut: l.rowsOut - before.rowsOut}
		for name, n := range l.context.counters {
			if added := n - before.counters[name]; added != 0 {
				if m.counters == nil {
					m.counters = make(map[string]int64)
				}
				m.counters[name] = added
			}
		}
		*before = madeShard{rowsIn: l.rowsIn, rowsOut: l.rowsOut, counters: maps.Clone(l.context.counters)}
		mark.links[i] = m
	}
	t.marks = append(t.marks, mark)
}

// shardMark is what the operators of a chain have counted for a shard, in chain order.
type shardMark struct {
	shard int
	links []madeShard
}

// releaseUnused releases the rows of queues that have no subtask in this process any more.
func (k *Retained) releaseUnused(r *run) error {
	var errs []error
	for i := range r.plan.Vertices {
		v := &r.plan.Vertices[i]
		s := k.sessions.Find(r.plan.Job, v.Queue)
		if v.Queue != "" && s != nil && r.localSubtasks(v).Empty() {
			k.take(v.Queue)
			errs = append(errs, s.Close())
		}
	}
	return errors.Join(errs...)
}

// report chooses what the run reports of what earlier runs have made: the shards of operators that
// it does not make again, if reports says so. The rest is forgotten.
func (k *Retained) report(p *plan.Plan, toMake [][]bool, reports map[plan.NodeID][]bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.keep = make(map[plan.NodeID]map[int]madeShard)
	for i := range p.Vertices {
		for _, c := range p.Vertices[i].Chain {
			for shard, m := range k.made[c.Node] {
				if !toMake[i][shard] && reports[c.Node][shard] {
					if k.keep[c.Node] == nil {
						k.keep[c.Node] = make(map[int]madeShard)
					}
					k.keep[c.Node][shard] = m
				}
			}
		}
	}
}

// reportInto adds the counts of shards that earlier runs have made to the first subtask of their
// vertex in this process, if there is one.
func (k *Retained) reportInto(r *run, rows [][]SubtaskReport) {
	if k == nil {
		return
	}
	for i := range r.plan.Vertices {
		v := &r.plan.Vertices[i]
		if len(rows[i]) == 0 {
			continue
		}
		to := &rows[i][0]
		for at, c := range v.Chain {
			sum := SubtaskReport{Operators: make([]OperatorReport, len(v.Chain))}
			own := &sum.Operators[at]
			for _, m := range k.keep[c.Node] {
				own.RowsIn, own.RowsOut = own.RowsIn+m.rowsIn, own.RowsOut+m.rowsOut
				for name, n := range m.counters {
					own.Counters = append(own.Counters, Counter{Name: name, Value: n})
				}
			}
			sum.RowsOut = own.RowsOut * int64(len(r.receivers.out[c.Node]))
			if at == 0 {
				sum.RowsIn = own.RowsIn
			}
			to.add(sum)
		}
	}
}

// sums returns what operators have accumulated for shards that earlier runs have made.
func (k *Retained) sums() (parts []sumPart) {
	if k == nil {
		return nil
	}
	for _, node := range slices.Sorted(maps.Keys(k.keep)) {
		byName := make(map[string]*sumPart)
		for _, shard := range slices.Sorted(maps.Keys(k.keep[node])) {
			for name, v := range k.keep[node][shard].sums {
				if byName[name] == nil {
					byName[name] = &sumPart{Node: node, Name: name}
				}
				byName[name].Shards, byName[name].Values = append(byName[name].Shards, shard), append(byName[name].Values, v)
			}
		}
		for _, name := range slices.Sorted(maps.Keys(byName)) {
			parts = append(parts, *byName[name])
		}
	}
	return parts
}
