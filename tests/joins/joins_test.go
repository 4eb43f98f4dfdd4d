// Package joins compares the results of join operators with the results of SQLite.
package joins

import (
	"context"
	"database/sql"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	_ "modernc.org/sqlite"

	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/operators"
)

// leftRow and rightRow are the rows of the tables that are joined. Key columns of the two
// tables have types of different widths, and a pair of key columns has different names.
type leftRow struct {
	ID   int64
	Int  *int64
	Text *string
	Real *float64
	Flag *bool
	Wide string
}

type rightRow struct {
	ID    int64
	Int   *uint16
	Text  *string
	Real  *float32
	Flag  *bool
	Other *int8
	Wide  string
}

// joined is a pair of joined rows, given by their IDs.
type joined struct{ Left, Right *int64 }

// distinct has the columns of the operator Distinct.
type distinct struct {
	Int  *int64
	Text *string
	Real *float64
	Flag *bool
}

// keys has join keys, each with the equivalent condition in SQL.
var keys = []struct {
	on  operators.JoinKeys
	sql string
}{
	{operators.On("int"), "l.int = r.int"},
	{operators.On("text"), "l.text = r.text"},
	{operators.On("real"), "l.real = r.real"},
	{operators.On("flag"), "l.flag = r.flag"},
	{operators.On().Equal("int", "other"), "l.int = r.other"},
	{operators.On("text", "flag"), "l.text = r.text AND l.flag = r.flag"},
	{operators.On("real", "text").Equal("int", "other"), "l.real = r.real AND l.text = r.text AND l.int = r.other"},
}

// drawn returns two random tables. Keys occur several times, and one key occurs often. Some
// values are missing, and some rows of each table have no partner.
func drawn(r *rand.Rand, big bool) (left []leftRow, right []rightRow) {
	sizes, different, wide := []int{0, 1, 8, 30, 100}, []int{1, 4, 25}[r.IntN(3)], ""
	if big {
		sizes, different, wide = []int{1200}, 900, strings.Repeat("wide ", 20)
	}
	number := func() int {
		if r.IntN(4) == 0 && !big || r.IntN(60) == 0 {
			return 0
		}
		return r.IntN(different)
	}
	text := func() string { return fmt.Sprintf("%.*s%d", number()%4, "äöü", number()%9) }
	real := func() float64 {
		return []float64{0, math.Copysign(0, -1), 0.5, -7.25, math.Inf(1), float64(number())}[r.IntN(6)]
	}
	left, right = make([]leftRow, sizes[r.IntN(len(sizes))]), make([]rightRow, sizes[r.IntN(len(sizes))])
	for i := range left {
		left[i] = leftRow{int64(i), some(r, int64(number())), some(r, text()), some(r, real()), some(r, r.IntN(2) == 0), wide}
	}
	for i := range right {
		right[i] = rightRow{int64(i), some(r, uint16(number())), some(r, text()), some(r, float32(real())), some(r, r.IntN(2) == 0), some(r, int8(number()%100)), wide}
	}
	return left, right
}

// some returns a pointer to v, or nil with probability 1/6.
func some[T any](r *rand.Rand, v T) *T {
	if r.IntN(6) == 0 {
		return nil
	}
	return &v
}

// load writes the tables to an empty database.
func load(t *testing.T, db *sql.DB, left []leftRow, right []rightRow) {
	t.Helper()
	tx, err := db.Begin()
	require.NoError(t, err)
	exec := func(text string, args ...any) {
		_, err := tx.Exec(text, args...)
		require.NoError(t, err)
	}
	exec("DROP TABLE IF EXISTS l")
	exec("DROP TABLE IF EXISTS r")
	exec("CREATE TABLE l (id INTEGER, int INTEGER, text TEXT, real REAL, flag INTEGER)")
	exec("CREATE TABLE r (id INTEGER, int INTEGER, text TEXT, real REAL, flag INTEGER, other INTEGER)")
	for _, v := range left {
		exec("INSERT INTO l VALUES (?, ?, ?, ?, ?)", v.ID, v.Int, v.Text, v.Real, v.Flag)
	}
	for _, v := range right {
		exec("INSERT INTO r VALUES (?, ?, ?, ?, ?, ?)", v.ID, v.Int, v.Text, v.Real, v.Flag, v.Other)
	}
	exec("CREATE INDEX l_int ON l (int)") // without indices SQLite compares every pair of rows
	exec("CREATE INDEX r_int ON r (int)")
	exec("CREATE INDEX r_other ON r (other)")
	require.NoError(t, tx.Commit())
}

// answer returns the rows of a query as sorted lines of text.
func answer(t *testing.T, db *sql.DB, query string) []string {
	t.Helper()
	rows, err := db.Query(query)
	require.NoError(t, err, query)
	defer rows.Close()
	columns, err := rows.Columns()
	require.NoError(t, err)
	lines := []string{}
	for rows.Next() {
		values, places := make([]any, len(columns)), make([]any, len(columns))
		for i := range values {
			places[i] = &values[i]
		}
		require.NoError(t, rows.Scan(places...))
		lines = append(lines, line(values...))
	}
	require.NoError(t, rows.Err())
	slices.Sort(lines)
	return lines
}

// line returns values as text, in one format for the operators and the database.
func line(values ...any) string {
	cells := make([]string, len(values))
	for i, v := range values {
		switch v := v.(type) {
		case float64:
			cells[i] = fmt.Sprint(v + 0) // turns -0 into 0
		case bool:
			cells[i] = "0"
			if v {
				cells[i] = "1"
			}
		default:
			cells[i] = fmt.Sprint(v)
		}
	}
	return strings.Join(cells, " | ")
}

func value[T any](p *T) any {
	if p == nil {
		return nil
	}
	return *p
}

// answers returns the results of the operators, and how many rows they wrote to disk.
func answers(t *testing.T, left []leftRow, right []rightRow, key operators.JoinKeys, opts ...engine.Option) (all map[string][]string, spilled int64) {
	t.Helper()
	result, err := engine.Run(context.Background(), engine.Anonymous(func(b *engine.Builder) error {
		l, r := operators.FromSlice(b, left), operators.FromSlice(b, right)
		for kind := operators.Inner; kind <= operators.Full; kind++ {
			engine.Collect(operators.Join(l, r, key, kind, func(l *leftRow, r *rightRow) (p joined) {
				if l != nil {
					p.Left = &l.ID
				}
				if r != nil {
					p.Right = &r.ID
				}
				return p
			}), kind.String())
		}
		id := func(l leftRow) joined { return joined{Left: &l.ID} }
		engine.Collect(operators.Map(operators.SemiJoin(l, r, key), id), "semi")
		engine.Collect(operators.Map(operators.AntiJoin(l, r, key), id), "anti")
		engine.Collect(operators.Distinct(operators.Select(l, "int", "text", "real", "flag")), "distinct")
		return nil
	}), struct{}{}, opts...)
	require.NoError(t, err)
	defer result.Release()
	all = map[string][]string{}
	for _, name := range []string{"inner", "left", "right", "full", "semi", "anti"} {
		rows, err := engine.Rows[joined](result, name)
		require.NoError(t, err)
		all[name] = []string{}
		for _, p := range rows {
			if name == "semi" || name == "anti" {
				all[name] = append(all[name], line(*p.Left))
			} else {
				all[name] = append(all[name], line(value(p.Left), value(p.Right)))
			}
		}
	}
	rows, err := engine.Rows[distinct](result, "distinct")
	require.NoError(t, err)
	all["distinct"] = []string{}
	for _, d := range rows {
		all["distinct"] = append(all["distinct"], line(value(d.Int), value(d.Text), value(d.Real), value(d.Flag)))
	}
	for _, lines := range all {
		slices.Sort(lines)
	}
	for _, v := range result.Report.Vertices {
		for _, s := range v.Subtasks {
			for _, o := range s.Operators {
				for _, c := range o.Counters {
					if c.Name == "rows spilled" {
						spilled += c.Value
					}
				}
			}
		}
	}
	return all, spilled
}

// TestAnswersOfADatabase joins 300 pairs of tables and requires the same results as SQLite.
// Some of the joins spill to disk. No value is NaN, because SQLite converts NaN to null.
func TestAnswersOfADatabase(t *testing.T) {
	db, err := sql.Open("sqlite", ":memory:")
	require.NoError(t, err)
	defer db.Close()
	db.SetMaxOpenConns(1)
	spill := t.TempDir()
	for seed := range 300 {
		r := rand.New(rand.NewPCG(uint64(seed), 2))
		big := seed%50 == 49
		left, right := drawn(r, big)
		load(t, db, left, right)
		key := keys[seed%len(keys)]
		if big {
			key = keys[[]int{0, 6}[seed%2]]
		}
		want := map[string][]string{}
		for _, kind := range []string{"inner", "left", "right", "full"} {
			want[kind] = answer(t, db, "SELECT l.id, r.id FROM l "+kind+" JOIN r ON "+key.sql)
		}
		want["semi"] = answer(t, db, "SELECT id FROM l WHERE EXISTS (SELECT 1 FROM r WHERE "+key.sql+")")
		want["anti"] = answer(t, db, "SELECT id FROM l WHERE NOT EXISTS (SELECT 1 FROM r WHERE "+key.sql+")")
		want["distinct"] = answer(t, db, "SELECT DISTINCT int, text, real, flag FROM l")
		opts := []engine.Option{engine.Shards(8), engine.Parallelism([]int{1, 2, 3, 8}[r.IntN(4)]), engine.BatchRows([]int{1, 7, 1024}[r.IntN(3)])}
		if big {
			opts = []engine.Option{engine.Shards(1), engine.Parallelism(1), engine.MemoryBudget(256 << 10), engine.SpillDir(spill)}
		}
		got, spilled := answers(t, left, right, key.on, opts...)
		require.Equal(t, want, got, "seed %d, join %s: the operators must give the rows of SQLite", seed, key.sql)
		require.Equal(t, big, spilled > 0, "seed %d: only large tables must spill; %d rows were written to disk", seed, spilled)
	}
}
