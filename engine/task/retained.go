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

// Retained is what a process keeps of a run that has failed, for the next run of the same graph, which
// may have other processes, other parts and another parallelism:
//
//   - the rows of the inputs of queues, by shard;
//   - for each shard that an operator outside of queues has made, what the operator counted and
//     accumulated, so that the shard need not be made again if all who need its rows have them;
//   - the rows that all subtasks of a queue get from another queue, and the report of the other queue
//     in the process that had its subtask 0, or that was given the report. If that queue is left out, it
//     reports no counts of rows.
//
// Rows that operators emit in Finish depend on all shards of a subtask, so queues behind such operators
// keep nothing. Neither do those behind operators of which it is not known yet.
//
// Rows that a queue had moved to mapped files stay in these files, which outlive the directory of their run,
// and with KeepFiles the process. Rows of queues that had ended are not kept. A Retained is used by one run at a
// time. NewRetained returns one that has nothing.
type Retained struct {
	mu      sync.Mutex
	left    bool // functions of a run may still use the rows
	rows    queueRows
	sides   map[sideKey][]arrow.Record // rows of queues that all subtasks of another queue read
	reports map[string]QueueReport     // of queues that have ended, in the process that had subtask 0
	made    madeShards
	ends    map[plan.NodeID]bool // of operators that have finished, not in one subtask: whether Finish has emitted rows
	keep    madeShards           // of the current run: what it does not make again and reports
	parent  string               // directory for files that outlive the process; "" if there is none
	files   *rowFiles            // in parent; nil if there are none
	lent    queueRows            // rows that loops of the current run lend, borrowed from them
	current *run                 // the current run; nil after its end
	whole   map[string]bool      // queues before which no operator of the current run has emitted rows in Finish
	ahead   aheadRows            // rows that are taken ahead of the next run; it has a lock of its own
}

// NewRetained returns a Retained of a process that has not run anything.
func NewRetained() *Retained {
	return &Retained{
		rows: make(queueRows), reports: make(map[string]QueueReport),
		ends: make(map[plan.NodeID]bool), made: make(madeShards), lent: make(queueRows),
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
	k.settleAhead()
	for _, rows := range k.rows {
		rows.dropAll()
	}
	clear(k.rows)
	clear(k.reports)
	clear(k.made)
	return k.files.close()
}

// holding describes what a process has retained, for the other processes of the next run.
type holding struct {
	Rows    []heldRows `msgpack:"rows"`
	Sides   []sideKey  `msgpack:"sides"`
	Reports []string   `msgpack:"reports"` // queues whose reports the process has
	Made    []heldNode `msgpack:"made"`
	// Ended are operators that have finished, and do not run in one subtask. Those in Ends have emitted
	// rows in Finish.
	Ended []plan.NodeID `msgpack:"ended"`
	Ends  []plan.NodeID `msgpack:"ends"`
}

// heldRows are shards of which a process has the rows of a queue's inputs.
type heldRows struct {
	Queue  string           `msgpack:"queue"`
	Shards []sharding.Range `msgpack:"shards"`
}

// heldNode are shards that an operator has made in a process, and what it has counted for each of them, in
// order. Counts is nil if that would be too long to say. Only this process can report it then.
type heldNode struct {
	Node   plan.NodeID      `msgpack:"node"`
	Shards []sharding.Range `msgpack:"shards"`
	Counts []madeShard      `msgpack:"counts"`
}

// holdings is the codec of holding. It checks every length that it reads.
var holdings = shared.Msgpack[holding]()

// Held describes what is retained, for Worker.Continue in all processes of the next run. It is nil if
// there is nothing. If the description would be longer than most bytes, it leaves out what operators have
// counted, and may still be longer.
func (k *Retained) Held(most int) ([]byte, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	h := k.holding()
	if h.Rows == nil && h.Made == nil && h.Sides == nil && h.Reports == nil && h.Ended == nil {
		return nil, nil
	}
	data, err := holdings.Append(nil, h)
	if err != nil || len(data) <= most {
		return data, err
	}
	for i := range h.Made {
		h.Made[i].Counts = nil
	}
	return holdings.Append(nil, h)
}

// holding returns what is retained. mu is held.
func (k *Retained) holding() (h holding) {
	for _, queue := range slices.Sorted(maps.Keys(k.rows)) {
		if rows := k.rows[queue]; len(rows) > 0 {
			h.Rows = append(h.Rows, heldRows{queue, rangesOf(rows)})
		}
	}
	for _, node := range slices.Sorted(maps.Keys(k.made)) {
		n := heldNode{Node: node, Shards: rangesOf(k.made[node])}
		for _, shard := range slices.Sorted(maps.Keys(k.made[node])) {
			n.Counts = append(n.Counts, k.made[node][shard])
		}
		h.Made = append(h.Made, n)
	}
	for key := range k.sides {
		h.Sides = append(h.Sides, key)
	}
	slices.SortFunc(h.Sides, func(a, b sideKey) int {
		return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.To, b.To), cmp.Compare(a.Port, b.Port))
	})
	h.Reports = slices.Sorted(maps.Keys(k.reports))
	h.Ended = slices.Sorted(maps.Keys(k.ends))
	for _, node := range h.Ended {
		if k.ends[node] {
			h.Ends = append(h.Ends, node)
		}
	}
	return h
}

// rangesOf returns the keys of a map, which are shards, as ranges in order.
func rangesOf[V any](shards map[int]V) (ranges []sharding.Range) {
	for _, shard := range slices.Sorted(maps.Keys(shards)) {
		if n := len(ranges); n > 0 && ranges[n-1].Hi == shard {
			ranges[n-1].Hi++
			continue
		}
		ranges = append(ranges, sharding.Range{Lo: shard, Hi: shard + 1})
	}
	return ranges
}

// decodeHolding decodes what Held returned in a process, and checks that it is of this plan.
func decodeHolding(p *plan.Plan, data []byte) (h holding, err error) {
	if len(data) == 0 {
		return h, nil
	}
	if h, err = holdings.Decode(data); err != nil {
		return h, err
	}
	check := func(ranges []sharding.Range) (n int, err error) {
		at := 0
		for _, r := range ranges {
			if r.Lo < at || r.Hi <= r.Lo || r.Hi > p.Shards {
				return 0, fmt.Errorf("shards %v after shard %d, of %d", r, at, p.Shards)
			}
			at, n = r.Hi, n+r.Len()
		}
		return n, nil
	}
	known := func(nodes ...plan.NodeID) (err error) {
		for _, node := range nodes {
			if node < 0 || int(node) >= len(p.Nodes) {
				err = errors.Join(err, fmt.Errorf("there is no node %d", node))
			}
		}
		return err
	}
	for _, r := range h.Rows {
		if !slices.ContainsFunc(p.Queues, func(q plan.Queue) bool { return q.Name == r.Queue }) {
			err = fmt.Errorf("there is no queue %q", r.Queue)
		}
		_, wrong := check(r.Shards)
		err = errors.Join(err, wrong)
	}
	for _, n := range h.Made {
		shards, wrong := check(n.Shards)
		if wrong == nil && n.Counts != nil && len(n.Counts) != shards {
			wrong = fmt.Errorf("counts of %d shards of node %d, of %d", len(n.Counts), n.Node, shards)
		}
		err = errors.Join(err, known(n.Node), wrong)
	}
	return h, errors.Join(err, known(h.Ended...), known(h.Ends...))
}

// KeepFiles makes rows of queues that lie in files outlive the process. dir is a directory for these files,
// of the processes of one job on this machine. The next run takes over what processes that have ended have
// left there. It is called before the run.
func (k *Retained) KeepFiles(dir string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.parent = dir
}

// begin is called when a run begins, which reports nothing of earlier runs unless it continues.
func (k *Retained) begin(p *plan.Plan, env Env) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.keep = nil
	if k.parent != "" && len(p.Queues) > 0 {
		k.openFiles(p, env)
	}
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

// forgetReport forgets the report of a queue that runs again.
func (k *Retained) forgetReport(queue string) {
	if k == nil {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.reports, queue)
}

// harvest keeps what the subtasks of a run that has failed have made. The loops of its queues have said
// which rows are kept.
func (k *Retained) harvest(r *run) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.holdSides(r)
	k.holdReports(r)
	k.settleAhead()
	k.forgetUnknown(r)
	k.holdMade(r)
}

// forgetUnknown notes which operators emit rows in Finish, and forgets the rows of queues behind those that
// have not finished yet.
func (k *Retained) forgetUnknown(r *run) {
	unknown := make(map[plan.NodeID]bool)
	for _, t := range r.subtasks {
		if t.vertex.Queue != "" || t.makesNothing() {
			continue
		}
		for _, l := range k.noteEnds(t) {
			unknown[l.node.ID] = true
		}
	}
	for node := range unknown {
		if _, known := k.ends[node]; known {
			continue
		}
		for _, queue := range queuesBehind(r.plan, node) {
			k.rows[queue].dropAll()
			delete(k.rows, queue)
		}
	}
}

// noteEnds notes which operators of a subtask outside of queues have finished, and returns the others. mu is
// held.
func (k *Retained) noteEnds(t *subtask) (unknown []*link) {
	for _, l := range t.links {
		switch {
		case l.operator == nil || l.node.Single:
		case l.ended:
			k.ends[l.node.ID] = k.ends[l.node.ID] || l.last
		default:
			unknown = append(unknown, l)
		}
	}
	return unknown
}

// learnEnds notes which operators have finished in other processes, and which have emitted rows then.
func (k *Retained) learnEnds(held []holding) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for i := range held {
		k.learnEnded(&held[i])
	}
}

// learnEnded notes what a holding says of operators that have finished. mu is held.
func (k *Retained) learnEnded(h *holding) {
	for _, node := range h.Ended {
		k.ends[node] = k.ends[node] || slices.Contains(h.Ends, node)
	}
}
