package task

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"sync"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/superstep-ml/superstep/engine/plan"
	"github.com/superstep-ml/superstep/internal/batch"
	"github.com/superstep-ml/superstep/internal/transport"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// Rows of a queue that an earlier run has left in one process may be needed in another, because shards have
// other owners in this run. The process that has them sends them over the edges by which they would come
// from the operators before the queue, to inboxes of their own (transport.Moved). They are messages as all
// others: bounded, checked, counted, and held within the receiver's budget. The sender keeps the rows of a
// subtask until the subtask has read all of its inputs and says so (transport.Taken). So if the run fails
// before that, they are not lost with the receiver.

// movedRows says, by queue and then by shard, which worker sends the rows of a shard to the worker with the
// shard's subtask: -1 if that has them itself, or if nobody has them. nobody has an element for each shard
// of a queue whose rows no worker has.
func movedRows(p *plan.Plan, hosts []int, held []holding) (from map[string][]int, kept map[string][]bool) {
	from, kept = make(map[string][]int), make(map[string][]bool)
	for i := range p.Vertices {
		v := &p.Vertices[i]
		if v.Queue == "" || kept[v.Queue] != nil {
			continue
		}
		holders := rowHolders(p, v, hosts, held)
		kept[v.Queue], from[v.Queue] = make([]bool, p.Shards), holders
		for t, owned := range v.Ranges {
			for shard := owned.Lo; shard < owned.Hi; shard++ {
				kept[v.Queue][shard] = holders[shard] >= 0
				if holders[shard] == hosts[t] {
					holders[shard] = -1
				}
			}
		}
	}
	return from, kept
}

// rowHolders returns the worker that has the rows of each shard of a queue, or -1 if none has: the worker
// with the shard's subtask if it has them, and otherwise the first worker that has them.
func rowHolders(p *plan.Plan, v *plan.Vertex, hosts []int, held []holding) []int {
	holders := slices.Repeat([]int{-1}, p.Shards)
	for w := range held {
		for _, rows := range held[w].Rows {
			for _, shards := range rows.Shards {
				for shard := shards.Lo; shard < shards.Hi && rows.Queue == v.Queue; shard++ {
					owner := hosts[sharding.Owner(p.Shards, v.Parallelism, shard)]
					if holders[shard] < 0 || owner == w {
						holders[shard] = w
					}
				}
			}
		}
	}
	return holders
}

// queueInputs returns the edges by which a queue gets the rows of its shards, and the vertex that reads them.
// Rows that move use the first edge to say that they have arrived.
func queueInputs(p *plan.Plan, queue string) (edges []int, v *plan.Vertex) {
	for i := range p.Edges {
		if e := &p.Edges[i]; p.Vertices[e.To].Queue == queue && e.Role != plan.Side && carriesRows(p, e) {
			edges, v = append(edges, i), &p.Vertices[e.To]
		}
	}
	return edges, v
}

// movedFrom returns the worker that sends this process the rows of a shard, or -1.
func (r *run) movedFrom(queue string, shard int) int {
	if r.continued == nil || r.continued.from[queue] == nil {
		return -1
	}
	return r.continued.from[queue][shard]
}

// handover is what this process sends to other workers of the rows of a queue.
type handover struct {
	run    *run
	queue  string
	vertex *plan.Vertex // that reads them
	edges  []int

	mu    sync.Mutex
	left  map[int][]int // shards that are kept, by the subtask that gets them
	bytes map[int]int64 // their bytes
	taken chan struct{} // closed when nothing is left
}

// prepareMoves makes the inboxes for the rows that this process gets from others, and finds out which rows
// it sends.
func (r *run) prepareMoves() error {
	moving := 0
	for i := range r.plan.Queues {
		queue := r.plan.Queues[i].Name
		edges, v := queueInputs(r.plan, queue)
		if !slices.ContainsFunc(r.continued.from[queue], func(w int) bool { return w >= 0 }) {
			continue
		}
		moving += len(edges)
		for _, edge := range edges {
			if err := r.receiveMoved(v, edge); err != nil {
				return err
			}
		}
		if err := r.addHandover(queue, v, edges); err != nil {
			return err
		}
	}
	if moving > 0 { // all workers find the same number
		r.transit = newTransit(r.plan, moving, r.env.MemoryBudget, r.subtaskRange.Len(), len(r.part.Slots), r.env.Credits)
	}
	return nil
}

// receiveMoved makes the inboxes of the subtasks here that get rows of an edge from other processes.
func (r *run) receiveMoved(v *plan.Vertex, edge int) error {
	here := r.localSubtasks(v)
	for t := here.Lo; t < here.Hi; t++ {
		if len(r.senders(v, t)) == 0 {
			continue
		}
		e := &r.plan.Edges[edge]
		ends := newEnds(sharding.Range{Lo: 0, Hi: r.plan.Shards}, true, func(err error) { r.record(r.edgeError(e, t, -1, err)) })
		in := r.newInbox(e, v.Ranges[t], t, ends, filepath.Join(r.scratch.dir, fmt.Sprintf("edge%d-moved%d.arrow", edge, t)))
		if r.receivers.moved[edge] == nil {
			r.receivers.moved[edge] = make(map[int]*inbox)
		}
		r.receivers.moved[edge][t] = in
		if err := r.network.Listen(transport.Address{Edge: edge, Inbox: transport.Moved(t), Worker: r.part.Worker}, in); err != nil {
			return err
		}
	}
	return nil
}

// senders returns the workers that send rows to a subtask, in order.
func (r *run) senders(v *plan.Vertex, subtask int) (workers []int) {
	owned := v.Ranges[subtask]
	for shard := owned.Lo; shard < owned.Hi; shard++ {
		if w := r.movedFrom(v.Queue, shard); w >= 0 && !slices.Contains(workers, w) {
			workers = append(workers, w)
		}
	}
	slices.Sort(workers)
	return workers
}

// addHandover finds out which rows of a queue this process sends. They count in its budget until they are
// taken.
func (r *run) addHandover(queue string, v *plan.Vertex, edges []int) error {
	h := &handover{run: r, queue: queue, vertex: v, edges: edges, left: make(map[int][]int), bytes: make(map[int]int64), taken: make(chan struct{})}
	for shard, from := range r.continued.from[queue] {
		if from != r.part.Worker {
			continue
		}
		t := sharding.Owner(r.plan.Shards, v.Parallelism, shard)
		h.left[t] = append(h.left[t], shard)
		for _, edge := range edges {
			rows, there := r.env.Retained.borrow(queue, r.plan.Edges[edge].Port, shard)
			if !there {
				return fmt.Errorf("worker %d has not kept the rows of shard %d of queue %q, as it said", r.part.Worker, shard, queue)
			}
			h.bytes[t] += rows.bytes()
			rows.batch.Release()
		}
	}
	if len(h.left) == 0 {
		return nil
	}
	for _, bytes := range h.bytes {
		r.budget.Take(bytes)
	}
	r.handovers = append(r.handovers, h)
	return r.network.Listen(transport.Address{Edge: edges[0], Inbox: transport.Taken, Worker: r.part.Worker}, h)
}

var _ transport.Receiver = (*handover)(nil)

// Receive takes the message of a subtask that it has the rows.
func (h *handover) Receive(m transport.Message) {
	defer m.Release()
	h.mu.Lock()
	defer h.mu.Unlock()
	shards, known := h.left[m.Shard]
	if !known || m.Rows != nil || !m.Last {
		h.run.record(h.run.edgeError(&h.run.plan.Edges[h.edges[0]], m.Shard, -1,
			fmt.Errorf("received word that it has the rows that worker %d has kept, which was not due", h.run.part.Worker)))
		return
	}
	delete(h.left, m.Shard)
	h.run.env.Retained.releaseRows(func(queue string, shard int) bool {
		return queue != h.queue || !slices.Contains(shards, shard)
	})
	h.run.budget.Release(h.bytes[m.Shard])
	if len(h.left) == 0 {
		close(h.taken)
	}
}

// sendMoved begins to send the rows that other workers get from this process: for each edge, to each
// worker at the same time, shard by shard.
func (r *run) sendMoved() {
	for _, h := range r.handovers {
		shards := make(map[int][]int) // by worker
		for shard, from := range r.continued.from[h.queue] {
			if from == r.part.Worker {
				to := r.hosts[sharding.Owner(r.plan.Shards, h.vertex.Parallelism, shard)]
				shards[to] = append(shards[to], shard)
			}
		}
		for _, edge := range h.edges {
			for _, list := range shards {
				r.running.Go(func() {
					if err := h.send(r.context, edge, list); err != nil {
						r.record(r.edgeError(&r.plan.Edges[edge], sharding.Owner(r.plan.Shards, h.vertex.Parallelism, list[0]), -1, err))
					}
				})
			}
		}
	}
}

// awaitTaken makes the run go on until other workers have all rows that this process sends.
func (r *run) awaitTaken() {
	for _, h := range r.handovers {
		r.running.Go(func() {
			select {
			case <-h.taken:
			case <-r.context.Done():
			}
		})
	}
}

// send sends the rows of shards, which are in increasing order, over an edge.
func (h *handover) send(ctx context.Context, edge int, shards []int) error {
	r := h.run
	out := &directOutput{
		senders: newSenders(edge, r.network, r.transit.gate), ranges: h.vertex.Ranges, hosts: r.hosts, moved: true,
		mem: r.env.Allocator, messageBytes: r.transit.messageBytes,
	}
	for _, shard := range shards {
		rows, there := r.env.Retained.borrow(h.queue, r.plan.Edges[edge].Port, shard)
		if !there {
			return fmt.Errorf("the rows of shard %d of queue %q were released before they were sent", shard, h.queue)
		}
		if err := h.sendShard(ctx, out, shard, rows); err != nil {
			return err
		}
	}
	return nil
}

// sendShard sends the rows of a shard, whose batch it owns.
func (h *handover) sendShard(ctx context.Context, out *directOutput, shard int, rows portRows) (err error) {
	defer rows.batch.Release()
	switch {
	case rows.batch.NumRows() == 0:
	case rows.file != nil:
		err = h.sendFile(ctx, out, shard, rows)
	default:
		err = out.emit(ctx, shard, rows.batch)
	}
	if err != nil {
		return err
	}
	return out.endShard(ctx, shard)
}

// sendFile sends the rows of a shard in a file. They are copied message by message, and the file is verified
// after the last copy and before the shard ends, as the receiver cannot verify it.
func (h *handover) sendFile(ctx context.Context, out *directOutput, shard int, rows portRows) error {
	n := int(rows.batch.NumRows())
	step := rowsOfSize(out.messageBytes, batch.Size(rows.batch), n)
	for lo := 0; lo < n; lo += step {
		var piece arrow.Record
		err := rows.file.Read(func() (err error) {
			part := rows.batch.NewSlice(int64(lo), int64(min(lo+step, n)))
			defer part.Release()
			piece, err = batch.Concat(h.run.env.Allocator, []arrow.Record{part})
			return err
		})
		if err == nil {
			err = out.emit(ctx, shard, piece)
			piece.Release()
		}
		if err != nil {
			return err
		}
	}
	if err := rows.file.Verify(); err != nil {
		return fmt.Errorf("rows that the process has kept in a file: %w", err)
	}
	return nil
}

// sayTaken tells the workers that have sent rows to a member that it has them.
func (m *member) sayTaken() error {
	if m.gang.generation > 0 {
		return nil
	}
	edges, v := queueInputs(m.run.plan, m.gang.queue.Name)
	if len(edges) == 0 {
		return nil
	}
	out := newSenders(edges[0], m.run.network, m.run.transit.gate)
	for _, w := range m.run.senders(v, m.index) {
		message := transport.Message{Shard: m.index, To: -1, Last: true}
		if err := out.send(m.context, destination{inbox: transport.Taken, worker: w}, message, 0); err != nil {
			return err
		}
	}
	return nil
}
