package comqueue_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/comqueue"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/operators"
)

// person has a column of every type that queues can read.
type person struct {
	ID     int64
	Height float64
	Adult  bool
	Name   string
	Home   []float64 `column:"home,dim=2"`
	Visits []float64
	Likes  operators.SparseVector `column:"likes,size=9"`
	Age    *int64
	Nick   *string
	Member *bool
	Score  *float64
}

func people(n int) []person {
	all := make([]person, n)
	for i := range all {
		p := person{ID: int64(i), Height: float64(i) / 2, Adult: i%3 == 0, Name: fmt.Sprint("p", i), Home: []float64{float64(i), float64(-i)}, Visits: make([]float64, i%4)}
		for k := range p.Visits {
			p.Visits[k] = float64(k)
		}
		if p.Likes.Size = 9; i%2 == 1 {
			p.Likes.Indices, p.Likes.Values = []int32{int32(i % 9)}, []float64{1}
		}
		if i%5 > 0 {
			age, nick, member, score := int64(20+i), fmt.Sprint("n", i), i%2 == 0, float64(i)*1.5
			p.Age, p.Nick, p.Member, p.Score = &age, &nick, &member, &score
		}
		all[i] = p
	}
	return all
}

// TestColumns reads a column of every type, from partitioned and broadcast data, and compares
// the values with the structs.
func TestColumns(t *testing.T) {
	rows, wide := comqueue.PartitionedRows("rows"), comqueue.BroadcastRows("wide")
	id, height, adult, name := rows.Ints("id"), rows.Floats("height"), rows.Bools("adult"), rows.Texts("name")
	home, visits, likes := rows.Matrix("home"), rows.Vectors("visits"), rows.Sparse("likes")
	age, nick, member, score := rows.Ints("age").Nullable(), rows.Texts("nick").Nullable(), rows.Bools("member").Nullable(), rows.Floats("score").Nullable()
	wideID, wideHeight, wideAdult, wideName := wide.Ints("id"), wide.Floats("height"), wide.Bools("adult"), wide.Texts("name")
	wideHome, wideVisits, wideLikes, wideAge := wide.Matrix("home"), wide.Vectors("visits"), wide.Sparse("likes"), wide.Ints("age").Nullable()
	all := people(60)
	line := func(i int, id int64, height float64, adult bool, name string, home, visits []float64, likes int32, age string) string {
		return fmt.Sprint(i, id, height, adult, name, home, visits, likes, age)
	}
	want := func(p person, i int) string {
		age, likes := "-", int32(-1)
		if p.Age != nil {
			age = fmt.Sprint(*p.Age, *p.Nick, *p.Member, *p.Score)
		}
		if len(p.Likes.Indices) > 0 {
			likes = p.Likes.Indices[0]
		}
		return line(i, p.ID, p.Height, p.Adult, p.Name, p.Home, p.Visits, likes, age)
	}
	first := func(x comqueue.Sparse, i int) int32 {
		if x.Offsets[i] == x.Offsets[i+1] {
			return -1
		}
		return x.Indices[x.Offsets[i]]
	}
	for _, p := range []int{1, 2, 3, 8} {
		var lines [60]string
		var seen int
		_, _, err := runOnce(t, func(b *engine.Builder) *engine.Dataset {
			from := operators.FromSlice(b, all)
			return comqueue.New(b, "people").InitWithPartitionedData(rows, from).InitWithBroadcastData(wide, from).
				Do(func(ctx *comqueue.ComContext) error {
					if ctx.TaskID() == 0 {
						ages, missing := wideAge.Get(ctx)
						for i, person := range wideID.Get(ctx) {
							seen++
							require.Equal(t, all[i].ID, person)
							require.Equal(t, all[i].Height, wideHeight.Get(ctx)[i])
							require.Equal(t, all[i].Adult, wideAdult.Get(ctx).At(i))
							require.Equal(t, all[i].Name, wideName.Get(ctx).At(i))
							require.Equal(t, all[i].Home, wideHome.Get(ctx).Row(i))
							require.Equal(t, all[i].Visits, append([]float64{}, wideVisits.Get(ctx).Row(i)...))
							require.Equal(t, i%2 == 0, first(wideLikes.Get(ctx), i) < 0)
							require.Equal(t, all[i].Age == nil, missing.At(i))
							require.True(t, missing.At(i) || ages[i] == *all[i].Age)
						}
						require.True(t, missing.Any())
						require.Equal(t, 60, wideVisits.Get(ctx).Len())
					}
					return ctx.ForShards(func(shard int) error {
						adults, names, homes, visits, likes := adult.Get(ctx, shard), name.Get(ctx, shard), home.Get(ctx, shard), visits.Get(ctx, shard), likes.Get(ctx, shard)
						ages, noAge := age.Get(ctx, shard)
						nicks, noNick := nick.Get(ctx, shard)
						members, noMember := member.Get(ctx, shard)
						scores, noScore := score.Get(ctx, shard)
						for i, person := range id.Get(ctx, shard) {
							text := "-"
							if !noAge.At(i) && !noNick.At(i) && !noMember.At(i) && !noScore.At(i) {
								text = fmt.Sprint(ages[i], nicks.At(i), members.At(i), scores[i])
							}
							lines[person] = line(int(person), person, height.Get(ctx, shard)[i], adults.At(i), strings.Clone(names.At(i)),
								homes.Row(i), visits.Row(i), first(likes, i), text)
						}
						return nil
					})
				}).
				CloseOnNode0(comqueue.Output(nothing)).SetMaxIter(1).Exec()
		}, engine.Parallelism(p), engine.Shards(16))
		require.NoError(t, err)
		require.Equal(t, 60, seen)
		for i, person := range all {
			require.Equal(t, want(person, i), lines[i], "parallelism %d", p)
		}
	}
}

// TestWrongColumns requires that wrong columns are reported when the job is built,
// with the line that adds the data to the queue, and that nulls are reported before any stage
// runs, with their row.
func TestWrongColumns(t *testing.T) {
	for _, test := range []struct {
		name      string
		column    func(rows comqueue.PartitionedData, wide comqueue.BroadcastData)
		late, run bool // late: the column is requested after the data is added; run: the job fails when it runs
		want      []string
	}{
		{name: "misspelt", column: func(r comqueue.PartitionedData, _ comqueue.BroadcastData) { r.Floats("heigth") },
			want: []string{`the dataset for "rows": `, `"heigth"`, `did you mean "height"?`}},
		{name: "another type", column: func(r comqueue.PartitionedData, _ comqueue.BroadcastData) { r.Ints("height") },
			want: []string{`column "height" is float64, where Ints wants int64`}},
		{name: "vectors of any sizes", run: true, column: func(r comqueue.PartitionedData, _ comqueue.BroadcastData) { r.Matrix("visits") },
			want: []string{`partitioned data "rows", shard 0: column "visits" has vectors of several sizes, where Matrix wants them of one: row 0 has 0 components and row 1 has 1`}},
		{name: "vectors of one size", column: func(r comqueue.PartitionedData, _ comqueue.BroadcastData) { r.Vectors("home") },
			want: []string{`column "home" is vector[2], where Vectors wants vectors of any sizes`}},
		{name: "sparse", column: func(r comqueue.PartitionedData, _ comqueue.BroadcastData) { r.Sparse("home") },
			want: []string{`column "home" is vector[2], where Sparse wants sparse vectors`}},
		{name: "no room for nulls", column: func(r comqueue.PartitionedData, _ comqueue.BroadcastData) { r.Matrix("home").Nullable() },
			want: []string{`column "home": Matrix has no room for nulls`}},
		{name: "broadcast", column: func(_ comqueue.PartitionedData, w comqueue.BroadcastData) { w.Texts("adult") },
			want: []string{`the dataset for "wide": column "adult" is bool, where Texts wants utf8`}},
		{name: "late", late: true, column: func(r comqueue.PartitionedData, _ comqueue.BroadcastData) { r.Bools("name") },
			want: []string{`the dataset for "rows": column "name" is utf8, where Bools wants bool`}},
		{name: "nulls", run: true, column: func(r comqueue.PartitionedData, _ comqueue.BroadcastData) { r.Ints("age") },
			want: []string{`partitioned data "rows", shard 0: `, `column "age" is null, where Ints has no room for nulls: read it as Nullable, or leave such rows out`, "row 0"}},
		{name: "nulls, of a column that has room for them elsewhere", run: true, column: func(r comqueue.PartitionedData, _ comqueue.BroadcastData) {
			r.Ints("age")
			roomy := r.Ints("age")
			roomy.Nullable()
			roomy.Nullable()
		}, want: []string{`column "age" is null, where Ints has no room for nulls`}},
		{name: "broadcast nulls", run: true, column: func(_ comqueue.PartitionedData, w comqueue.BroadcastData) { w.Texts("nick") },
			want: []string{`broadcast data "wide": `, `column "nick" is null, where Texts has no room for nulls`}},
	} {
		t.Run(test.name, func(t *testing.T) {
			rows, wide := comqueue.PartitionedRows("rows"), comqueue.BroadcastRows("wide")
			ran := false
			_, _, err := runOnce(t, func(b *engine.Builder) *engine.Dataset {
				if !test.late {
					test.column(rows, wide)
				}
				from := operators.FromSlice(b, people(20))
				q := comqueue.New(b, "people").InitWithPartitionedData(rows, from).InitWithBroadcastData(wide, from).
					Do(func(*comqueue.ComContext) error { ran = true; return nil })
				if test.late {
					test.column(rows, wide)
				}
				return q.CloseOnNode0(comqueue.Output(nothing)).SetMaxIter(1).Exec()
			}, engine.Parallelism(1), engine.Shards(4))
			for _, want := range append(test.want, "columns_test.go:") {
				require.ErrorContains(t, err, want)
			}
			require.LessOrEqual(t, strings.Count(err.Error(), "did you mean"), 1)
			require.False(t, ran)
		})
	}
}

// TestColumnsMadeAgain requires that a column allows nulls if it is made several times, each
// time as nullable.
func TestColumnsMadeAgain(t *testing.T) {
	rows := comqueue.PartitionedRows("rows")
	for range 3 {
		_, _, err := runOnce(t, func(b *engine.Builder) *engine.Dataset {
			age := rows.Ints("age").Nullable()
			return comqueue.New(b, "people").InitWithPartitionedData(rows, operators.FromSlice(b, people(20))).
				Do(func(ctx *comqueue.ComContext) error { age.Get(ctx, ctx.Shards().Lo); return nil }).
				CloseOnNode0(comqueue.Output(nothing)).SetMaxIter(1).Exec()
		}, engine.Parallelism(2), engine.Shards(4))
		require.NoError(t, err)
	}
}

// TestColumnsOfFailedDatasets requires that, if a dataset could not be built, only this is
// reported, and not that the dataset lacks columns.
func TestColumnsOfFailedDatasets(t *testing.T) {
	rows := comqueue.PartitionedRows("rows")
	rows.Ints("age")
	_, _, err := runOnce(t, func(b *engine.Builder) *engine.Dataset {
		from := operators.ReadCSV(b, "nowhere.csv", operators.CSVOptions{})
		return comqueue.New(b, "people").InitWithPartitionedData(rows, from).Do(idle).
			CloseOnNode0(comqueue.Output(nothing)).SetMaxIter(1).Exec()
	})
	require.ErrorContains(t, err, "nowhere.csv does not exist")
	require.NotContains(t, err.Error(), "age")
	require.NotContains(t, err.Error(), "errors:")
}
