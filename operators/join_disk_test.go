package operators

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/testsize"
)

// wide is a large row, of which only few fit in memory.
type wide struct {
	Key  int64
	Seq  int64
	Note *string
}

// wideRows returns n rows with keys less than keys; every eighth row has the same key.
func wideRows(n, keys int) []wide {
	rows := make([]wide, n)
	for i := range rows {
		rows[i] = wide{Key: int64(i) * 7919 % int64(keys), Seq: int64(i)}
		if i%8 == 3 {
			rows[i].Key = 5
		}
		if i%3 > 0 {
			note := fmt.Sprintf("%0*d", i%60, i)
			rows[i].Note = &note
		}
	}
	return rows
}

type widePair struct {
	Left, Right *int64
	Notes       string
}

func pairWide(l, r *wide) (p widePair) {
	if l != nil {
		p.Left = &l.Seq
		if l.Note != nil {
			p.Notes = *l.Note
		}
	}
	if r != nil {
		p.Right = &r.Seq
		if r.Note != nil {
			p.Notes += *r.Note
		}
	}
	return p
}

// TestJoinsOnDisk joins tables with far more rows than fit in memory. Very many rows of the
// right table have the same key. The result must have the same bytes as in a run with enough
// memory.
func TestJoinsOnDisk(t *testing.T) {
	left, right := wideRows(testsize.Of(3000, 8000), 30_011), wideRows(testsize.Of(8000, 20_000), 9001)
	left[6] = wide{Key: 5, Seq: 6} // this left row has very many partners
	for i := range left {
		if i%8 == 3 && i > 100 {
			left[i].Key = int64(-i)
		}
	}
	for name, build := range map[string]func(l, r *engine.Dataset) *engine.Dataset{
		"inner": func(l, r *engine.Dataset) *engine.Dataset { return Join(l, r, On("key"), Inner, pairWide) },
		"full":  func(l, r *engine.Dataset) *engine.Dataset { return Join(l, r, On("key"), Full, pairWide) },
		"group": func(l, r *engine.Dataset) *engine.Dataset {
			return CoGroup(l, r, On("key"), func(left, right *Group[wide], emit func(widePair)) error {
				for x := range left.Rows() {
					for y := range right.Rows() {
						emit(pairWide(&x, &y))
					}
				}
				emit(widePair{Notes: fmt.Sprint(left.Len(), right.Len())})
				return nil
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			requireSameOnDisk(t, func(b *engine.Builder) *engine.Dataset {
				return build(FromSlice(b, left), FromSlice(b, right))
			})
		})
	}
}

// TestSetsOnDisk requires the same as TestJoinsOnDisk for operators that hold only keys in
// memory.
func TestSetsOnDisk(t *testing.T) {
	left, right := wideRows(testsize.Of(10_000, 30_000), 100_003), wideRows(testsize.Of(16_000, 50_000), 60_013)
	for name, build := range map[string]func(l, r *engine.Dataset) *engine.Dataset{
		"semi":     func(l, r *engine.Dataset) *engine.Dataset { return SemiJoin(l, r, On("key")) },
		"anti":     func(l, r *engine.Dataset) *engine.Dataset { return AntiJoin(l, r, On("key")) },
		"distinct": func(_, r *engine.Dataset) *engine.Dataset { return Distinct(r, "key", "note") },
	} {
		t.Run(name, func(t *testing.T) {
			requireSameOnDisk(t, func(b *engine.Builder) *engine.Dataset {
				return build(FromSlice(b, left), FromSlice(b, right))
			})
		})
	}
}

// TestJoinFailures makes the function of a join fail at one of several rows, in memory and on
// disk, and requires an error that names the row. The checked allocator of runError detects
// leaks.
func TestJoinFailures(t *testing.T) {
	rows := wideRows(300, 40)
	rows[250].Note = nil
	for _, most := range []int{0, 5} {
		for _, at := range []int64{0, 120, 299} {
			err := runError(t, func(b *engine.Builder) *engine.Dataset {
				return addJoin("JoinErr", FromSlice(b, rows), FromSlice(b, rows), On("key"), Full, most, func() {}, false,
					func(l, r *wide) (wide, error) {
						if l != nil && l.Seq == at {
							return wide{}, fmt.Errorf("sequence %d", at)
						}
						return wide{}, nil
					})
			}, engine.BatchRows(16))
			require.ErrorContains(t, err, fmt.Sprintf("of the left dataset: sequence %d", at))
			require.ErrorContains(t, err, "row ")
			err = runError(t, func(b *engine.Builder) *engine.Dataset {
				return addCoGroup("CoGroup", FromSlice(b, rows), FromSlice(b, rows), On("key"), most,
					func(left, right *Group[wide], emit func(wide)) error {
						for l := range left.Rows() {
							if l.Seq == at {
								return fmt.Errorf("sequence %d", at)
							}
							emit(l)
						}
						return nil
					})
			}, engine.BatchRows(16))
			require.ErrorContains(t, err, fmt.Sprintf("the first of its group: sequence %d", at))
		}
	}
}

// noNote is a row whose note is never null.
type noNote struct {
	Key  int64
	Note string
}

// TestNullsThatRowsCannotHold requires an error that names the row and the side if a null is
// read into a field that cannot be null, in memory, on disk and in groups.
func TestNullsThatRowsCannotHold(t *testing.T) {
	left, right := []noNote{{1, "a"}, {2, "b"}, {3, "c"}}, wideRows(8, 4)
	for i := range right {
		if right[i].Note == nil && i != 6 {
			note := "some"
			right[i].Note = &note
		}
	}
	right[6].Note = nil
	for _, most := range []int{0, 1} {
		for name, build := range map[string]func(l, r *engine.Dataset) *engine.Dataset{
			"join": func(l, r *engine.Dataset) *engine.Dataset {
				return addJoin("Join", l, r, On("key"), Full, most, func() {}, false, func(*noNote, *noNote) (noNote, error) { return noNote{}, nil })
			},
			"group": func(l, r *engine.Dataset) *engine.Dataset {
				return addCoGroup("CoGroup", l, r, On("key"), most, func(_, right *Group[noNote], emit func(noNote)) error {
					for r := range right.Rows() {
						emit(r)
					}
					return nil
				})
			},
		} {
			err := runError(t, func(b *engine.Builder) *engine.Dataset {
				return build(FromSlice(b, left), PartitionByCustom(FromSlice(b, right), func(wide, int) int { return 0 }))
			})
			require.ErrorContains(t, err, "of the right dataset: column \"note\" is null", "%s, %d", name, most)
		}
	}
}

// TestRowsOfAFunctionAreItsOwn requires that changes that a call makes to its row structs are
// not visible to other calls.
func TestRowsOfAFunctionAreItsOwn(t *testing.T) {
	rows := []wide{{Key: 1, Seq: 1}, {Key: 1, Seq: 2}}
	for _, most := range []int{0, 1} {
		got := outcome(t, func(b *engine.Builder) *engine.Dataset {
			d := FromSlice(b, rows)
			return addJoin("Join", d, d, On("key"), Inner, most, func() {}, false, func(l, r *wide) (int64, error) {
				seen := 10*l.Seq + r.Seq
				l.Seq, r.Seq = 100, 100
				return seen, nil
			})
		}, engine.Shards(1), engine.Parallelism(1))
		require.Equal(t, []string{"shard int64 | value int64", "0 | 11", "0 | 12", "0 | 21", "0 | 22"}, got)
	}
}

// TestCheckOfJoinsOnDisk requires that engine.Check finds functions that change slices in rows
// of a join on disk.
func TestCheckOfJoinsOnDisk(t *testing.T) {
	type row struct {
		Key    int64
		Vector []float64
	}
	for name, change := range map[string]func(l, r *row){
		"left":  func(l, _ *row) { l.Vector[0]++ },
		"right": func(_, r *row) { r.Vector[0]++ },
	} {
		err := engine.Check(context.Background(), engine.Anonymous(func(b *engine.Builder) error {
			d := FromSlice(b, []row{{1, []float64{1}}, {2, []float64{2}}, {3, []float64{3}}})
			engine.Collect(addJoin("Join", d, d, On("key"), Inner, 1, func() {}, false, func(l, r *row) (int64, error) {
				change(l, r)
				return 0, nil
			}), "out")
			return nil
		}), struct{}{}, engine.Shards(1))
		require.ErrorIs(t, err, errLentChanged, name)
	}
}
