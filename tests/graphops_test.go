package tests

import (
	"encoding/binary"
	"math"
	"slices"

	"github.com/zeebo/xxh3"

	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/operators"
)

// graphOps has the operators of which random graphs are made. The first operator is the source.
var graphOps = []graphOp{
	{
		name: "FromSlice",
		build: func(b *engine.Builder, s step, _ []*engine.Dataset) *engine.Dataset {
			return operators.FromSlice(b, s.rows)
		},
		reference: func(s step, _ [][][]cell) [][]cell {
			out := make([][]cell, graphShards)
			for i := range out {
				out[i] = s.rows[i*len(s.rows)/graphShards : (i+1)*len(s.rows)/graphShards]
			}
			return out
		},
	},
	{
		name: "Map", inputs: 1,
		build: func(_ *engine.Builder, s step, in []*engine.Dataset) *engine.Dataset {
			return operators.Map(in[0], func(c cell) cell { return shifted(c, s.arg) })
		},
		reference: func(s step, in [][][]cell) [][]cell {
			return perRow(in[0], func(_, _ int, c cell) []cell { return []cell{shifted(c, s.arg)} })
		},
	},
	{
		name: "Filter", inputs: 1,
		build: func(_ *engine.Builder, s step, in []*engine.Dataset) *engine.Dataset {
			return operators.Filter(in[0], func(c cell) bool { return kept(c, s.arg) })
		},
		reference: func(s step, in [][][]cell) [][]cell {
			return perRow(in[0], func(_, _ int, c cell) []cell {
				if kept(c, s.arg) {
					return []cell{c}
				}
				return nil
			})
		},
	},
	{
		name: "FlatMap", inputs: 1,
		build: func(_ *engine.Builder, s step, in []*engine.Dataset) *engine.Dataset {
			return operators.FlatMap(in[0], func(c cell, emit func(cell)) error {
				for _, copied := range copies(c, s.arg) {
					emit(copied)
				}
				return nil
			})
		},
		reference: func(s step, in [][][]cell) [][]cell {
			return perRow(in[0], func(_, _ int, c cell) []cell { return copies(c, s.arg) })
		},
	},
	{
		name: "WithColumn", inputs: 1,
		build: func(_ *engine.Builder, s step, in []*engine.Dataset) *engine.Dataset {
			return operators.WithColumn(in[0], "value", func(c cell) float64 { return shifted(c, s.arg).Value })
		},
		reference: func(s step, in [][][]cell) [][]cell {
			return perRow(in[0], func(_, _ int, c cell) []cell {
				c.Value = shifted(c, s.arg).Value
				return []cell{c}
			})
		},
	},
	{
		name: "MapPartition", inputs: 1,
		build: func(_ *engine.Builder, _ step, in []*engine.Dataset) *engine.Dataset {
			return operators.MapPartition(in[0], func(s *operators.Shard[cell], emit func(cell)) error {
				sum := 0.0
				for c := range s.Rows() {
					sum += c.Value
					c.Value = sum
					emit(c)
				}
				return nil
			})
		},
		reference: func(_ step, in [][][]cell) [][]cell {
			sum := 0.0
			return perRow(in[0], func(_, index int, c cell) []cell {
				if index == 0 {
					sum = 0
				}
				sum += c.Value
				c.Value = sum
				return []cell{c}
			})
		},
	},
	{
		name: "MapWith", inputs: 2,
		build: func(_ *engine.Builder, _ step, in []*engine.Dataset) *engine.Dataset {
			return operators.MapWith(in[0], in[1], func(c cell, side []cell) (cell, error) { return addAll(c, side), nil })
		},
		reference: func(_ step, in [][][]cell) [][]cell {
			side := slices.Concat(in[1]...)
			return perRow(in[0], func(_, _ int, c cell) []cell { return []cell{addAll(c, side)} })
		},
	},
	{
		name: "Union", inputs: 2,
		build: func(_ *engine.Builder, _ step, in []*engine.Dataset) *engine.Dataset {
			return operators.Union(in[0], in[1])
		},
		reference: func(_ step, in [][][]cell) [][]cell {
			out := make([][]cell, graphShards)
			for i := range out {
				out[i] = slices.Concat(in[0][i], in[1][i])
			}
			return out
		},
	},
	{
		// Each row has at most one partner, so that the number of rows does not grow without
		// bounds when joins are repeated.
		name: "Join", inputs: 2,
		build: func(_ *engine.Builder, s step, in []*engine.Dataset) *engine.Dataset {
			return operators.Join(in[0], operators.Distinct(in[1], "key"), operators.On("key"), operators.JoinKind(s.arg%4),
				func(l, r *cell) cell { return paired(l, r) })
		},
		reference: func(s step, in [][][]cell) [][]cell {
			byKey := func(_, _ int, c cell) int { return hashShard(c, "key") }
			left, right := exchanged(in[0], byKey), exchanged(in[1], byKey)
			kind := operators.JoinKind(s.arg % 4)
			out := make([][]cell, graphShards)
			for shard := range out {
				var first []cell
				for _, r := range right[shard] {
					if !slices.ContainsFunc(first, func(c cell) bool { return c.Key == r.Key }) {
						first = append(first, r)
					}
				}
				for _, l := range left[shard] {
					i := slices.IndexFunc(first, func(c cell) bool { return c.Key == l.Key })
					if i >= 0 {
						out[shard] = append(out[shard], paired(&l, &first[i]))
					} else if kind == operators.Left || kind == operators.Full {
						out[shard] = append(out[shard], paired(&l, nil))
					}
				}
				for _, r := range first {
					if kind != operators.Right && kind != operators.Full || slices.ContainsFunc(left[shard], func(c cell) bool { return c.Key == r.Key }) {
						continue
					}
					out[shard] = append(out[shard], paired(nil, &r))
				}
			}
			return out
		},
	},
	{
		name: "AntiJoin", inputs: 2,
		build: func(_ *engine.Builder, _ step, in []*engine.Dataset) *engine.Dataset {
			return operators.AntiJoin(in[0], in[1], operators.On("key"))
		},
		reference: func(_ step, in [][][]cell) [][]cell {
			all := slices.Concat(in[1]...)
			left := exchanged(in[0], func(_, _ int, c cell) int { return hashShard(c, "key") })
			return perRow(left, func(_, _ int, c cell) []cell {
				if slices.ContainsFunc(all, func(other cell) bool { return other.Key == c.Key }) {
					return nil
				}
				return []cell{c}
			})
		},
	},
	{
		name: "Rebalance", inputs: 1,
		build: func(_ *engine.Builder, _ step, in []*engine.Dataset) *engine.Dataset {
			return operators.Rebalance(in[0])
		},
		reference: func(_ step, in [][][]cell) [][]cell {
			return exchanged(in[0], func(shard, index int, _ cell) int { return (shard + index) % graphShards })
		},
	},
	{
		name: "PartitionByHash", inputs: 1,
		build: func(_ *engine.Builder, s step, in []*engine.Dataset) *engine.Dataset {
			return operators.PartitionByHash(in[0], hashedColumns(s.arg)...)
		},
		reference: func(s step, in [][][]cell) [][]cell {
			return exchanged(in[0], func(_, _ int, c cell) int { return hashShard(c, hashedColumns(s.arg)...) })
		},
	},
	{
		name: "PartitionByCustom", inputs: 1,
		build: func(_ *engine.Builder, s step, in []*engine.Dataset) *engine.Dataset {
			return operators.PartitionByCustom(in[0], func(c cell, shards int) int { return customShard(c, s.arg, shards) })
		},
		reference: func(s step, in [][][]cell) [][]cell {
			return exchanged(in[0], func(_, _ int, c cell) int { return customShard(c, s.arg, graphShards) })
		},
	},
	{
		name: "First", inputs: 1,
		build: func(_ *engine.Builder, s step, in []*engine.Dataset) *engine.Dataset {
			return operators.First(in[0], int64(3*s.arg))
		},
		reference: func(s step, in [][][]cell) [][]cell {
			left := 3 * s.arg
			return perRow(in[0], func(_, _ int, c cell) []cell {
				if left--; left < 0 {
					return nil
				}
				return []cell{c}
			})
		},
	},
	{
		name: "Sample", inputs: 1,
		build: func(b *engine.Builder, s step, in []*engine.Dataset) *engine.Dataset {
			*s.purpose = b.DrawPurpose("Sample 7", in[0])
			return operators.Sample(in[0], float64(s.arg)/10, operators.SampleOptions{Seed: 7})
		},
		reference: func(s step, in [][][]cell) [][]cell {
			return perRow(in[0], func(shard, index int, c cell) []cell {
				if drawnAt(*s.purpose, shard, index) < float64(s.arg)/10 {
					return []cell{c}
				}
				return nil
			})
		},
	},
	{
		name: "Split", inputs: 1,
		build: func(b *engine.Builder, s step, in []*engine.Dataset) *engine.Dataset {
			*s.purpose = b.DrawPurpose("Split 5", in[0])
			return operators.SplitWith(in[0], operators.SplitOptions{Seed: 5}, 3, 1)[s.arg%2]
		},
		reference: func(s step, in [][][]cell) [][]cell {
			return perRow(in[0], func(shard, index int, c cell) []cell {
				if second := drawnAt(*s.purpose, shard, index) >= 0.75; second == (s.arg%2 == 1) {
					return []cell{c}
				}
				return nil
			})
		},
	},
	{
		name: "ZipWithIndex", inputs: 1,
		build: func(_ *engine.Builder, _ step, in []*engine.Dataset) *engine.Dataset {
			without := operators.Select(in[0], "text", "value")
			return operators.Select(operators.ZipWithIndex(without, "key"), "key", "value", "text")
		},
		reference: func(_ step, in [][][]cell) [][]cell {
			next := int64(-1)
			return perRow(in[0], func(_, _ int, c cell) []cell {
				next++
				c.Key = next
				return []cell{c}
			})
		},
	},
	{
		name: "Count", inputs: 1,
		build: func(_ *engine.Builder, _ step, in []*engine.Dataset) *engine.Dataset {
			return operators.Map(operators.Count(in[0]), func(n int64Count) cell { return cell{Key: n.Count} })
		},
		reference: func(_ step, in [][][]cell) [][]cell {
			out := make([][]cell, graphShards)
			out[graphShards-1] = []cell{{Key: int64(len(slices.Concat(in[0]...)))}}
			return out
		},
	},
	{
		name: "Reduce", inputs: 1,
		build: func(_ *engine.Builder, _ step, in []*engine.Dataset) *engine.Dataset {
			return operators.Reduce(in[0], joined)
		},
		reference: func(_ step, in [][][]cell) [][]cell {
			partial := make([]*cell, graphShards)
			for shard, rows := range in[0] {
				for _, c := range rows {
					if partial[shard] == nil {
						partial[shard] = ptr(c)
					} else {
						partial[shard] = ptr(joined(*partial[shard], c))
					}
				}
			}
			out := make([][]cell, graphShards)
			if all := treeFold(partial, joined); all != nil {
				out[graphShards-1] = []cell{*all}
			}
			return out
		},
	},
	{
		name: "GroupBy.Aggregate", inputs: 1,
		build: func(_ *engine.Builder, _ step, in []*engine.Dataset) *engine.Dataset {
			sums := operators.GroupBy(in[0], "key").Aggregate(operators.SumOf("value").As("value"), operators.MaxOf("text").As("text"))
			return operators.Map(sums, func(c cell) cell { return c })
		},
		reference: func(_ step, in [][][]cell) [][]cell {
			out := make([][]cell, graphShards)
			for _, group := range groupsOf(in[0]) {
				partial := make([]*float64, graphShards)
				var text *string
				for shard, rows := range group.rows {
					for _, c := range rows {
						if partial[shard] == nil {
							partial[shard] = ptr(c.Value)
						} else {
							*partial[shard] += c.Value
						}
						if c.Text != nil && (text == nil || *c.Text > *text) {
							text = c.Text
						}
					}
				}
				sum := treeFold(partial, func(a, b float64) float64 { return a + b })
				out[group.shard] = append(out[group.shard], cell{group.key, *sum, text})
			}
			return out
		},
	},
	{
		name: "FoldGroups", inputs: 1,
		build: func(_ *engine.Builder, _ step, in []*engine.Dataset) *engine.Dataset {
			return operators.FoldGroups(operators.GroupBy(in[0], "key"),
				func() cell { return cell{} }, halved,
				func(key groupKey, acc cell) cell { return cell{key.Key, acc.Value, acc.Text} })
		},
		reference: func(_ step, in [][][]cell) [][]cell {
			out := make([][]cell, graphShards)
			for _, group := range groupsOf(in[0]) {
				acc := cell{}
				for _, c := range slices.Concat(group.rows...) {
					acc = halved(acc, c)
				}
				out[group.shard] = append(out[group.shard], cell{group.key, acc.Value, acc.Text})
			}
			return out
		},
	},
	{
		// The shard of a sorted row depends on a sample of the rows. Only the order across all
		// shards is tested, so the rows are gathered in one shard.
		name: "Sort", inputs: 1,
		build: func(_ *engine.Builder, s step, in []*engine.Dataset) *engine.Dataset {
			sorted := operators.Sort(in[0], operators.Asc("text"), operators.Desc("key"))
			return operators.PartitionByCustom(sorted, func(cell, int) int { return s.arg % graphShards })
		},
		reference: func(s step, in [][][]cell) [][]cell {
			rows := slices.Concat(in[0]...)
			slices.SortStableFunc(rows, func(a, b cell) int {
				switch {
				case a.Text == nil && b.Text == nil, a.Text != nil && b.Text != nil && *a.Text == *b.Text:
					return int(b.Key - a.Key)
				case b.Text == nil, a.Text != nil && *a.Text < *b.Text:
					return -1
				}
				return 1
			})
			out := make([][]cell, graphShards)
			out[s.arg%graphShards] = rows
			return out
		},
	},
}

type (
	int64Count struct{ Count int64 }
	groupKey   struct{ Key int64 }
)

// Both versions of the operators, the engine's and the reference, use the following functions.

func paired(l, r *cell) cell {
	switch {
	case l == nil:
		return cell{r.Key, -r.Value, r.Text}
	case r == nil:
		return *l
	}
	return cell{l.Key, l.Value - r.Value, r.Text}
}

func shifted(c cell, arg int) cell {
	c.Key += int64(arg)
	c.Value = c.Value / float64(arg+1)
	return c
}

func kept(c cell, arg int) bool { return (c.Key+100)%5 != int64(arg%5) }

func copies(c cell, arg int) []cell {
	var all []cell
	for i := range (int(c.Key) + 100 + arg) % 3 {
		c.Value = c.Value / float64(i+3)
		all = append(all, c)
	}
	return all
}

func addAll(c cell, side []cell) cell {
	for _, s := range side {
		c.Value += s.Value
	}
	return c
}

// joined merges two cells. It is associative except for rounding, and not commutative.
func joined(left, right cell) cell {
	return cell{left.Key, left.Value + right.Value, right.Text}
}

// halved folds a cell into acc. The result depends on the order of the rows.
func halved(acc, c cell) cell {
	return cell{acc.Key, acc.Value/3 + c.Value, c.Text}
}

func customShard(c cell, arg, shards int) int { return int(c.Key+1000) * (arg + 1) % shards }

func hashedColumns(arg int) []string {
	return [][]string{{"key"}, {"text"}, {"value", "text"}}[arg%3]
}

// hashShard returns the shard of a row by the hash of the given columns, in their documented
// encoding. A number is a tag and eight bytes. A text is a tag, its length and its bytes. Null
// is only the tag 0.
func hashShard(c cell, columns ...string) int {
	var key []byte
	number := func(tag byte, v uint64) {
		key = binary.LittleEndian.AppendUint64(append(key, tag), v)
	}
	for _, column := range columns {
		switch {
		case column == "key":
			number(2, uint64(c.Key))
		case column == "value" && c.Value == 0:
			number(3, 0)
		case column == "value":
			number(3, math.Float64bits(c.Value))
		case c.Text == nil:
			key = append(key, 0)
		default:
			number(4, uint64(len(*c.Text)))
			key = append(key, *c.Text...)
		}
	}
	return int(xxh3.Hash(key) % graphShards)
}

// group has the rows with the same key, grouped by source shard.
type group struct {
	key   int64
	shard int // shard to which the rows are sent
	rows  [][]cell
}

// groupsOf returns the rows of d grouped by key, in the order in which the keys first occur.
func groupsOf(d [][]cell) []*group {
	var groups []*group
	for shard, rows := range d {
		for _, c := range rows {
			i := slices.IndexFunc(groups, func(g *group) bool { return g.key == c.Key })
			if i < 0 {
				i = len(groups)
				groups = append(groups, &group{c.Key, hashShard(c, "key"), make([][]cell, graphShards)})
			}
			groups[i].rows[shard] = append(groups[i].rows[shard], c)
		}
	}
	return groups
}
