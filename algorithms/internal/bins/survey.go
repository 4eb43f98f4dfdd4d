package bins

import (
	"fmt"
	"math"

	"github.com/superstep-ml/superstep/algorithms/internal/rows"
	"github.com/superstep-ml/superstep/comqueue"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/shared"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// The queue that computes the facts has one superstep with these stages:
//
//	scan                 per shard: rows, features, weights, labels, classes, categories
//	merge                up the tree over shards
//	agree                the features, and the scale of the weights
//	then, for each group of features (see finder):
//	  sort values        the subtask's own values
//	  AllGather          the distinct values, if there are few
//	  count values       per feature: the weight of its values, and the rows without a value
//	  AllReduce
//	  begin
//	  8 × probe, AllReduce, narrow     values at equal steps of the weight
//	  divide             values that weigh more than a bin get their own bins
//	  8 × probe, AllReduce, narrow     values at equal steps of the weight of the others
//	  settle             cuts from the results of the two searches
//	  next to cuts       the values on both sides of each cut
//	  AllReduce
//	  finish
//	count entries        per sparse feature: the number of rows that store it
//	AllReduce
//	then, for each window of sparse features (see bundler):
//	  meetings           pairs of features that some row stores both of
//	  AllReduce
//	  bundle
//	lay out
//
// All reductions but merge are of integers, whose sums do not depend on the order. So a subtask
// contributes one buffer for all its shards (see once).

// Objects of the queue.
var (
	packedRows   = comqueue.PartitionedRows("packed rows")
	statsOfShard = shared.PerShard("statistics of the shard", shared.Msgpack[shardStats]())
	statsOfAll   = shared.Replicated("statistics of all shards", shared.Msgpack[shardStats]())
	ownValues    = shared.Scratch[[]int32]("own values")
	allValues    = shared.Scratch[[]int32]("values")
	counts       = shared.Scratch[[]int64]("counts")
	probes       = shared.Scratch[[]int64]("probes")
	sides        = shared.Scratch[[]int64]("sides of cuts")
	stored       = shared.Scratch[[]int64]("stored entries")
	meetings     = shared.Scratch[[]int64]("meetings")
	surveyor     = shared.Scratch[*survey]("survey of features")

	// found is the row that the queue outputs. It is an object of shard 0, which subtask 0 owns
	// at any parallelism, because the parallelism may change before the queue is closed.
	found = shared.PerShard("facts", shared.Msgpack[knownRow]())
)

// shardStats has the facts about a shard, or about a range of shards, that one scan gives.
type shardStats struct {
	Shards       []int32 // the shards that have rows
	ShardRows    []int64
	Rows         int64
	Weighing     int64
	Least, Most  int // least and largest number of features of a row; for sparse rows, the largest index plus 1
	Weight       float64
	MaxWeight    float64
	Label        rows.Moments
	Min, Max     float64
	Groups       int64
	Dictionaries []dictionary
	Feature      []int32 // sparse rows: the features that occur, ascending
	Entries      []int64 // number of entries of each of Feature
}

// merge returns the statistics of the union of two ranges of shards, where o comes right after l.
func (l shardStats) merge(o shardStats) shardStats {
	m := shardStats{
		Shards: append(append([]int32{}, l.Shards...), o.Shards...), ShardRows: append(append([]int64{}, l.ShardRows...), o.ShardRows...),
		Rows: l.Rows + o.Rows, Weighing: l.Weighing + o.Weighing, Least: min(l.Least, o.Least), Most: max(l.Most, o.Most),
		Weight: l.Weight + o.Weight, MaxWeight: max(l.MaxWeight, o.MaxWeight), Label: l.Label.Merge(o.Label),
		Min: min(l.Min, o.Min), Max: max(l.Max, o.Max), Groups: l.Groups + o.Groups,
	}
	for i := range l.Dictionaries {
		m.Dictionaries = append(m.Dictionaries, l.Dictionaries[i].Merge(o.Dictionaries[i], dictionaryLimit))
	}
	m.Feature, m.Entries = mergeEntries(l, o)
	return m
}

// dictionaryLimit is the largest number of values of any dictionary.
const dictionaryLimit = max(rows.MaxClasses, MaxCategories)

// mergeEntries returns the union of the features in l and o, and the sums of their numbers of
// entries.
func mergeEntries(l, o shardStats) (feature []int32, entries []int64) {
	i, j := 0, 0
	for i < len(l.Feature) || j < len(o.Feature) {
		switch {
		case j == len(o.Feature) || i < len(l.Feature) && l.Feature[i] < o.Feature[j]:
			feature, entries = append(feature, l.Feature[i]), append(entries, l.Entries[i])
			i++
		case i == len(l.Feature) || o.Feature[j] < l.Feature[i]:
			feature, entries = append(feature, o.Feature[j]), append(entries, o.Entries[j])
			j++
		default:
			feature, entries = append(feature, l.Feature[i]), append(entries, l.Entries[i]+o.Entries[j])
			i, j = i+1, j+1
		}
	}
	return feature, entries
}

// survey is the state of the queue of the facts on one subtask.
type survey struct {
	table  Table
	finder finder
	bundle bundler
	known  known
	handed bool // whether the sums of the current stage of once have been written to a buffer
}

// survey adds the queue of the facts to b and returns its output. op is the first word of the
// queue's name.
func (t Table) survey(b *engine.Builder, op string) *engine.Dataset {
	or := comqueue.CommutativeOperator("or", int64(0), func(dst, src []int64) {
		for i, v := range src[:len(dst)] {
			dst[i] |= v
		}
	})
	search := func() comqueue.Stage {
		return comqueue.Repeat(rounds, searched,
			once("probe values", probes, func(s *survey, out []int64) { s.finder.probe(out) }),
			comqueue.AllReduce(probes),
			comqueue.Named("narrow", comqueue.Do(narrow)))
	}
	return comqueue.New(b, op+" facts").
		InitWithPartitionedData(packedRows, t.Rows).
		Add(comqueue.Named("scan", comqueue.Do(t.scanShards))).
		Add(comqueue.AllReduceShardObjects(statsOfShard, statsOfAll, shardStats.merge)).
		Add(comqueue.Named("agree", comqueue.Do(t.agree))).
		Add(comqueue.Repeat(math.MaxInt32, lastGroup,
			comqueue.Named("sort values", comqueue.Do(sortValues)),
			comqueue.AllGather(ownValues, allValues),
			once("count values", counts, func(s *survey, out []int64) { s.finder.counts(out) }),
			comqueue.AllReduce(counts),
			comqueue.Named("begin", comqueue.Do(begin)),
			search(),
			comqueue.Named("divide", comqueue.Do(divideWeight)),
			search(),
			comqueue.Named("settle", comqueue.Do(settle)),
			once("next to cuts", sides, func(s *survey, out []int64) { s.finder.neighbours(out) }),
			comqueue.AllReduce(sides, comqueue.Max),
			comqueue.Named("finish", comqueue.Do(finish)))).
		Add(comqueue.Named("begin bundling", comqueue.Do(beginBundling))).
		Add(once("count entries", stored, func(s *survey, out []int64) { s.bundle.count(out) })).
		Add(comqueue.AllReduce(stored)).
		Add(comqueue.Named("choose features to bundle", comqueue.Do(chooseToBundle))).
		Add(comqueue.Repeat(math.MaxInt32, lastWindow,
			once("meetings", meetings, func(s *survey, out []int64) { s.bundle.meet(out) }),
			comqueue.AllReduce(meetings, or),
			comqueue.Named("bundle", comqueue.Do(bundle)))).
		Add(comqueue.Named("lay out", comqueue.Do(layOut))).
		SetMaxIter(1).
		CloseOnNode0(comqueue.Output(func(ctx *comqueue.ComContext) ([]knownRow, error) {
			return []knownRow{found.Get(ctx, 0)}, nil
		})).
		Exec().Named("facts")
}

// once returns a stage in which each subtask fills one buffer with the sums over all its
// shards, instead of one buffer for each shard.
func once(name string, key shared.Key[[]int64], fill func(s *survey, out []int64)) comqueue.Stage {
	hand := func(ctx *comqueue.ComContext, out []int64) {
		if s := surveyor.Get(ctx); !s.handed {
			s.handed = true
			fill(s, out)
		}
	}
	return comqueue.Named(name, comqueue.ForEachShard(key,
		func(ctx *comqueue.ComContext, _ int, out []int64) error {
			hand(ctx, out)
			return nil
		},
		comqueue.FoldedBy(func(ctx *comqueue.ComContext, _ sharding.Range, out []int64) (bool, error) {
			hand(ctx, out)
			return true, nil
		})))
}

// expect provides the buffer of n sums for the next stage of once.
func (s *survey) expect(ctx *comqueue.ComContext, key shared.Key[[]int64], n int) {
	s.handed = false
	if buffer, ok := key.Lookup(ctx); !ok || len(buffer) != n {
		key.Put(ctx, make([]int64, n))
	}
}

// scanShards unpacks the shards and stores the statistics of each.
func (t Table) scanShards(ctx *comqueue.ComContext) error {
	s := &survey{table: t}
	s.finder.plan = t.plan
	surveyor.Put(ctx, s)
	for _, key := range []shared.Key[[]int64]{counts, probes, sides, stored, meetings} {
		key.Put(ctx, nil)
	}
	return ctx.ForShards(func(shard int) error {
		p, err := unpack(packedRows.Get(ctx, shard))
		if err != nil || p.n == 0 {
			return err
		}
		s.finder.parts = append(s.finder.parts, p)
		s.finder.rows += int64(p.n)
		statsOfShard.Put(ctx, shard, t.plan.scanShard(shard, &p))
		return nil
	})
}

// scanShard scans a shard and returns its statistics.
func (p *plan) scanShard(shard int, part *packed) shardStats {
	l := shardStats{
		Shards: []int32{int32(shard)}, ShardRows: []int64{int64(part.n)}, Rows: int64(part.n), Weighing: int64(part.n),
		Least: part.d, Most: part.d, Weight: float64(part.n), MaxWeight: 1, Min: math.Inf(1), Max: math.Inf(-1),
		Groups: int64(max(0, len(part.groups)-1)), Dictionaries: part.dictionaries,
	}
	if part.weight != nil {
		l.Weight, l.MaxWeight = 0, 0
		for _, w := range part.weight {
			l.Weight += w
			l.MaxWeight = max(l.MaxWeight, w)
			if w == 0 {
				l.Weighing--
			}
		}
	}
	if p.label == NumberLabel {
		y := part.label
		if p.upperAt >= 0 {
			y = make([]float64, len(y)) // an infinite lower end counts as 0
			for i, v := range part.label {
				if !math.IsInf(v, 0) {
					y[i] = v
				}
			}
		}
		l.Label = rows.MomentsOf(y, part.weight)
		for _, v := range y {
			l.Min, l.Max = min(l.Min, v), max(l.Max, v)
		}
	}
	for i, f := range part.feature {
		l.Feature = append(l.Feature, f)
		l.Entries = append(l.Entries, int64(part.start[i+1]-part.start[i]))
	}
	return l
}

// If sparse rows declare more than compactFrom features and at most half of them occur, only
// the features that occur are listed.
const compactFrom = 1 << 16

// agree computes facts from the merged statistics of all shards, or returns an error if the rows are
// unusable.
func (t Table) agree(ctx *comqueue.ComContext) error {
	s := surveyor.Get(ctx)
	all, ok := statsOfAll.Lookup(ctx)
	if !ok {
		all = shardStats{}
	}
	p := t.plan
	if err := p.usable(all); err != nil {
		return err
	}
	facts := &s.known.Facts
	*facts = Facts{
		Declared: p.dim, Rows: all.Rows, Weighing: all.Weighing, Weight: all.Weight, LabelType: p.labelType(), Groups: all.Groups,
		ShardRows: make([]int64, ctx.TotalShards()),
	}
	if facts.Declared == 0 {
		facts.Declared = all.Most
	}
	for i, shard := range all.Shards {
		facts.ShardRows[shard] = all.ShardRows[i]
	}
	if p.label == NumberLabel {
		facts.LabelMean, facts.LabelStd = all.Label.Mean, math.Sqrt(all.Label.Squares/all.Label.Weight)
		facts.LabelMin, facts.LabelMax = all.Min, all.Max
	}
	dictionaries := all.Dictionaries
	if p.label == ClassLabel {
		classes := dictionaries[0]
		dictionaries = dictionaries[1:]
		facts.ClassWeights = classes.Weight
		for i, key := range classes.Keys {
			s.known.Keys = append(s.known.Keys, []byte(key))
			facts.Classes = append(facts.Classes, classes.Text(i))
		}
	}
	f := &s.finder
	f.features = p.list(facts.Declared, all.Feature)
	if err := p.setCategories(f.features, dictionaries); err != nil {
		return err
	}
	f.prepare(all, ctx.NumTask())
	return nil
}

// prepare initialises a finder whose features and parts are set.
func (f *finder) prepare(all shardStats, tasks int) {
	f.missing, f.expect = make([]int64, len(f.features)), make([]int64, len(f.features))
	next := 0
	for i := range f.features {
		f.expect[i] = all.Rows/int64(tasks) + 1
		if f.plan.kind == sparseRows {
			f.expect[i] = 1
			for next < len(all.Feature) && int(all.Feature[next]) < f.features[i].Number {
				next++
			}
			if next < len(all.Feature) && int(all.Feature[next]) == f.features[i].Number {
				f.expect[i] = all.Entries[next]/int64(tasks) + 1
			}
		}
	}
	if f.plan.weightAt >= 0 {
		f.setWeights(all.MaxWeight, all.Rows)
	}
}

// usable returns an error if the rows cannot be trained on.
func (p *plan) usable(all shardStats) error {
	totals := rows.Totals{Rows: all.Rows, Weight: all.Weight, Label: all.Label}
	if p.label == ClassLabel && len(all.Dictionaries) > 0 {
		totals.Classes = len(all.Dictionaries[0].Keys)
	}
	c := rows.Columns{Label: p.columns.Label, Weight: p.columns.Weight, Skip: p.columns.Skip}
	if err := c.Usable(p.label, totals); err != nil {
		return err
	}
	switch {
	case p.kind == raggedRows && all.Least != all.Most:
		return fmt.Errorf("column %q has vectors of %d components and of %d: vectors are of one size", p.schema.Field(p.vector).Name, all.Least, all.Most)
	case p.kind != sparseRows && all.Most == 0:
		return fmt.Errorf("column %q: the vectors have no components", p.schema.Field(p.vector).Name)
	}
	for at := range p.codedAt {
		if dim := max(p.dim, all.Most); at >= dim && p.kind != sparseRows {
			return fmt.Errorf("categorical component %d is not one of column %q, which has %d", at, p.schema.Field(p.vector).Name, dim)
		}
	}
	return nil
}

// list returns the features, without bins. declared is the number of declared features, and
// occur has the features that occur in sparse rows.
func (p *plan) list(declared int, occur []int32) []Feature {
	var all []Feature
	add := func(number int) {
		is, _ := p.categorical(number)
		all = append(all, Feature{Name: p.nameOf(number), Number: number, Categorical: is, Column: -1, Slot: -1, Implicit: -1})
	}
	if p.kind == sparseRows && declared > compactFrom && 2*len(occur) <= declared {
		for _, number := range occur {
			add(int(number))
		}
		return all
	}
	for number := range declared {
		add(number)
	}
	return all
}

// setCategories sets the bins of the categorical features from their dictionaries.
func (p *plan) setCategories(features []Feature, dictionaries []dictionary) error {
	at := map[int]*Feature{}
	for i := range features {
		at[features[i].Number] = &features[i]
	}
	for _, wanted := range []bool{true, false} { // the dictionaries of text columns come first
		for _, number := range p.categories() {
			if _, text := p.categorical(number); text != wanted {
				continue
			}
			d := dictionaries[0]
			dictionaries = dictionaries[1:]
			if len(d.Keys) > MaxCategories {
				return tooManyCategories(p.describe(number))
			}
			if f := at[number]; f != nil {
				f.setCategories(d, wanted)
			}
		}
	}
	return nil
}

// The following stages run once for each group of features.

func lastGroup(ctx *comqueue.ComContext) (bool, error) {
	f := &surveyor.Get(ctx).finder
	return f.next >= len(f.features), nil
}

func sortValues(ctx *comqueue.ComContext) error {
	s := surveyor.Get(ctx)
	s.finder.load()
	ownValues.Put(ctx, s.finder.distinct())
	allValues.Put(ctx, nil)
	s.expect(ctx, counts, s.finder.countsLength())
	return nil
}

func begin(ctx *comqueue.ComContext) error {
	s := surveyor.Get(ctx)
	s.finder.merge(allValues.Get(ctx))
	s.finder.begin(counts.Get(ctx))
	s.expect(ctx, probes, s.finder.probeLength())
	return nil
}

func searched(ctx *comqueue.ComContext) (bool, error) {
	return !surveyor.Get(ctx).finder.searching(), nil
}

func narrow(ctx *comqueue.ComContext) error {
	s := surveyor.Get(ctx)
	s.finder.narrow(probes.Get(ctx))
	s.expect(ctx, probes, s.finder.probeLength())
	return nil
}

func divideWeight(ctx *comqueue.ComContext) error {
	s := surveyor.Get(ctx)
	s.finder.divide()
	s.expect(ctx, probes, s.finder.probeLength())
	return nil
}

func settle(ctx *comqueue.ComContext) error {
	s := surveyor.Get(ctx)
	s.finder.settle()
	s.expect(ctx, sides, s.finder.neighboursLength())
	return nil
}

func finish(ctx *comqueue.ComContext) error {
	s := surveyor.Get(ctx)
	s.finder.finish(sides.Get(ctx))
	return nil
}

// The following stages bundle sparse features and finish the queue.

func beginBundling(ctx *comqueue.ComContext) error {
	s := surveyor.Get(ctx)
	f := &s.finder
	s.known.Facts.Missing = f.missing
	s.bundle = newBundler(f.plan, f.features, f.missing, f.parts, s.known.Facts.Rows)
	f.free, f.pairs, f.other, f.spare, f.weights = nil, nil, nil, nil, nil
	s.expect(ctx, stored, s.bundle.countLength())
	return nil
}

func chooseToBundle(ctx *comqueue.ComContext) error {
	s := surveyor.Get(ctx)
	s.bundle.choose(stored.Get(ctx))
	s.expect(ctx, meetings, s.bundle.meetLength())
	return nil
}

func bundle(ctx *comqueue.ComContext) error {
	s := surveyor.Get(ctx)
	s.bundle.bundle(meetings.Get(ctx))
	s.expect(ctx, meetings, s.bundle.meetLength())
	return nil
}

func lastWindow(ctx *comqueue.ComContext) (bool, error) {
	return surveyor.Get(ctx).bundle.done(), nil
}

func layOut(ctx *comqueue.ComContext) error {
	s := surveyor.Get(ctx)
	s.known.Layout = s.bundle.layout()
	if ctx.TaskID() != 0 {
		return nil
	}
	row, err := s.known.encode()
	found.Put(ctx, 0, row)
	return err
}
