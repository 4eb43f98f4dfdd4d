package comqueue

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/shared"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// A queue is cut when it stops between two supersteps so that other subtasks can continue it.
// Its subtasks then hand over their encoded objects and the snapshots of their instances, which
// determine the queue's result. Other subtasks continue from this state: each gets the objects
// of the shards that it owns now, and the replicated objects of subtask 0.
//
// The rows stay in the session. The session passes the frame of a shard, with its share of the
// budget and its file, to the shard's new owner, and broadcast rows to all subtasks. The
// session releases the rows when the last gang closes it. Data that stages have made from rows,
// such as blocks of HoldBlock, belong to the subtask and its range of shards: they are released
// with the gang, and Init makes them again.

// instanceStates has the snapshots of a subtask's instances in the order of their stages, and
// nil for an instance without a snapshot.
type instanceStates [][]byte

var statesCodec = shared.Msgpack[instanceStates]()

// foldsCodec encodes which reported series are sums or maxima over shards in the superstep,
// because the close function must not use Report under the names of these series. Subtask 0
// hands the encoding over with the objects, under the name "", which no key has.
var foldsCodec = shared.Msgpack[map[string]fold]()

// encoded returns the kept objects of the given kinds, encoded, without the rows of inputs.
func (b *body) encoded(kinds ...shared.Kind) (saved []shared.Encoded, err error) {
	except := func(name string, kind shared.Kind) bool {
		return !slices.Contains(kinds, kind) || b.queue.isInput(name)
	}
	for e, err := range b.context.objects.Encode(except) {
		if err != nil {
			return nil, err
		}
		e.Data = bytes.Clone(e.Data)
		saved = append(saved, e)
	}
	return saved, nil
}

// Cut implements engine.Loop.
func (b *body) Cut(subtasks int) (part engine.CutPart, err error) {
	if part, err = b.Save(); err != nil {
		return part, err
	}
	if err := b.canContinue(b.subtasks, subtasks, part.Own != nil); err != nil {
		return part, err
	}
	if err := b.verifyRows(); err != nil {
		return part, err
	}
	b.handedOver.Add(1)
	return part, nil
}

// Save implements engine.Loop.
func (b *body) Save() (part engine.CutPart, err error) {
	if b.unsavable != nil {
		return part, fmt.Errorf("queue %q cannot be saved: %w", b.queue.name, b.unsavable)
	}
	if part.Own, err = b.snapshots(); err != nil {
		return part, err
	}
	kinds := []shared.Kind{shared.KindPerShard}
	if b.subtask == 0 {
		kinds = append(kinds, shared.KindReplicated)
	}
	if part.Objects, err = b.encoded(kinds...); err != nil {
		return part, err
	}
	if !b.saved {
		b.saved = true
		if err := b.checkSaved(part.Objects); err != nil {
			return part, fmt.Errorf("queue %q cannot be saved: %w", b.queue.name, err)
		}
	}
	if b.subtask != 0 {
		return part, nil
	}
	part.Objects, err = b.appendFolds(part.Objects) // only subtask 0 has folded reports
	return part, err
}

// checkSaved checks, when the state of a subtask is saved for the first time, that the queue can
// continue from it: codecs must restore what they encode, and the replicated objects, of which
// only those of subtask 0 are saved, must be the same on all subtasks. If the subtasks are in one
// process, the last subtask to save compares the objects; see checkReplicasAcross.
func (b *body) checkSaved(objects []shared.Encoded) error {
	if err := b.context.objects.CheckCodecs(objects); err != nil || b.acrossProcesses() {
		return err
	}
	held, err := b.context.objects.Fingerprints(nil, b.queue.isInput)
	if err != nil {
		return err
	}
	b.gang.saving.Lock()
	defer b.gang.saving.Unlock()
	b.gang.replicas[b.subtask-b.here.Lo] = held
	if b.gang.savers++; b.gang.savers < b.here.Len() {
		return nil
	}
	if e := replicasDiffer(b.gang.replicas, b.context.step+1); e != nil {
		return e
	}
	return nil
}

// checkReplicasAcross does the same as checkSaved for the replicated objects of subtasks in several
// processes. All subtasks call it before the first of them saves its state, and all take part, also one
// whose codec fails. On such a subtask, and on the lowest one that differs from subtask 0, Save then
// returns the error.
func (b *body) checkReplicasAcross(step int) error {
	held, unencodable := b.context.objects.Fingerprints(nil, b.queue.isInput)
	e, err := b.replicasDiffer(replicas{Subtask: b.subtask, Held: held, None: unencodable != nil}, step+1)
	if unencodable != nil {
		b.unsavable = unencodable
	} else if e != nil && e.Subtask == b.subtask {
		b.unsavable = e
	}
	return err
}

// appendFolds appends the names of the reported series that were folded over shards in the
// superstep, if there are any.
func (b *body) appendFolds(objects []shared.Encoded) ([]shared.Encoded, error) {
	folded := b.reports.foldedIn(b.context.step)
	if len(folded) == 0 {
		return objects, nil
	}
	data, err := foldsCodec.Append(nil, folded)
	return append(objects, shared.Encoded{Kind: shared.KindReplicated, Shard: -1, Data: data}), err
}

// snapshots returns the encoded snapshots of the subtask's instances, nil if there are none.
func (b *body) snapshots() ([]byte, error) {
	kept, any := make(instanceStates, len(b.instances)), false
	for i, instance := range b.instances {
		snapshot, err := instance.snapshot()
		if err != nil {
			return nil, err
		}
		kept[i], any = snapshot, any || snapshot != nil
	}
	if !any {
		return nil, nil
	}
	return statesCodec.Append(nil, kept)
}

// canContinue returns an error if the number of subtasks changes from before to after and the
// queue's state depends on it: because the plan marks a result as depending on parallelism, or
// because there are snapshots of instances, which belong to one subtask and cannot be split.
func (g *gang) canContinue(before, after int, snapshots bool) error {
	if before == after {
		return nil
	}
	refused := func(why string) error {
		return fmt.Errorf("queue %q cannot continue with %d subtasks in place of %d: %s", g.queue.name, after, before, why)
	}
	for i := range g.specs {
		if s := &g.specs[i]; s.Order == engine.RankTree {
			return refused(fmt.Sprintf("the result of %s depends on parallelism, as the plan says", stageTitle(s)))
		}
	}
	if snapshots {
		return refused("stages added by AddNew keep snapshots, each of which belongs to one subtask; keep such state under keys of package shared, or stay at this parallelism")
	}
	return nil
}

// owned returns the shards of each subtask of the queue.
func (g *gang) owned() []sharding.Range {
	owned := make([]sharding.Range, g.subtasks)
	for i := range owned {
		owned[i] = sharding.Split(g.queue.b.Shards(), g.subtasks, i)
	}
	return owned
}

// resume gives the objects of the Cut to the subtasks that own the shards now. Objects stay
// encoded until their keys are used. If an earlier gang of this process has left rows in the session,
// they are given to the subtasks too.
func (g *gang) resume(from *engine.Cut) error {
	for _, part := range from.Parts {
		if err := g.canContinue(from.Subtasks(), g.subtasks, part.Own != nil); err != nil {
			return err
		}
	}
	owned := g.owned()
	if g.kept {
		if err := g.session.Regroup(owned, g.queue.isInput); err != nil {
			return err
		}
	}
	elsewhere := func(shard int) bool { // the shard is in another process
		return shard < owned[g.here.Lo].Lo || shard >= owned[g.here.Hi-1].Hi && shard < g.queue.b.Shards()
	}
	var objects []shared.Encoded
	for i := range from.Parts {
		given := from.Parts[i].Objects
		from.Parts[i].Objects = nil // the session keeps the bytes of each object until its key is used
		for _, e := range given {
			switch {
			case e.Kind == shared.KindPerShard && elsewhere(e.Shard):
				continue
			case e.Name != "":
				objects = append(objects, e)
				continue
			}
			folded, err := foldsCodec.Decode(e.Data)
			if err != nil {
				return fmt.Errorf("reports: %w", err)
			}
			g.reports.refold(folded, from.Step)
		}
	}
	return g.session.Restore(objects)
}

// rejoin restores the instances of the subtask from their snapshots.
func (b *body) rejoin() error {
	if b.resumed == nil || b.resumed.Subtasks() != b.subtasks || b.resumed.Parts[b.subtask].Own == nil {
		return nil
	}
	kept, err := statesCodec.Decode(b.resumed.Parts[b.subtask].Own)
	if err == nil && len(kept) != len(b.instances) {
		err = fmt.Errorf("snapshots of %d stages, of %d", len(kept), len(b.instances))
	}
	if err != nil {
		return fmt.Errorf("continue after superstep %d: %w", b.resumed.Step, err)
	}
	for i, instance := range b.instances {
		if err := instance.restore(kept[i]); err != nil {
			return err
		}
	}
	return nil
}

// requireFrame returns frame, which the previous gang left in the session. If ok is false, the
// session does not have it, and requireFrame returns an error.
func requireFrame(frame *Frame, ok bool) (*Frame, error) {
	if !ok {
		return nil, errors.New("the rows that the queue continues with are not in this process")
	}
	return frame, nil
}
