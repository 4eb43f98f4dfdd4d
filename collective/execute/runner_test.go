package execute

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/superstep-ml/superstep/collective/algorithm"
	"github.com/superstep-ml/superstep/collective/program"
	"github.com/superstep-ml/superstep/internal/testsize"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// modes are options for serial and parallel runs. In some of them, segments are so short that
// even short messages have many segments.
var modes = []struct {
	name string
	opt  Options
}{
	{"serial", Options{Segment: 1 << 20, SerialLimit: 1 << 20}},
	{"parallel", Options{Segment: 64, SerialLimit: -1}},
	{"whole messages on two stripes", Options{Segment: 1 << 20, SerialLimit: -1, Channels: 2}},
	{"mixed on three stripes", Options{Segment: 192, SerialLimit: 96, Channels: 3}},
}

// lengths returns the numbers of elements with which a collective of p ranks is tested.
func lengths(c program.Collective, p int) []int {
	switch {
	case c == program.Barrier:
		return []int{0}
	case testsize.Soak:
		return []int{0, 1, p - 1, p, p + 1, 1000, 5003}
	case testsize.Few:
		return []int{0, 1, p + 1, 203}
	default:
		return []int{0, 1, p - 1, p, p + 1, 203}
	}
}

// counts returns pseudo-random block lengths, some of which are 0.
func counts(seed, chunks, n int) []int {
	c := make([]int, chunks)
	for i := range c {
		if x := mix(uint64(seed*1000 + i)); x%4 != 0 {
			c[i] = int(x>>8) % (2*n/chunks + 2)
		}
	}
	return c
}

// layoutsFor returns sets of layouts for data of about n elements. A set has a layout for each
// rank.
func layoutsFor(a *algorithm.Algorithm, chunks, p, n int) [][]program.Layout {
	same := func(l program.Layout) []program.Layout {
		ls := make([]program.Layout, p)
		for r := range ls {
			ls[r] = l
		}
		return ls
	}
	all := [][]program.Layout{same(program.Even(n, chunks))}
	if a.Collective == program.AllToAll {
		// A block has different chunk numbers at its sender and at its receiver, so if all
		// ranks have the same layout, all chunks must have the same length.
		all[0] = same(program.Blocks(uniform(chunks, n/chunks)))
	}
	if a.EvenOnly || n < chunks {
		return all
	}
	if a.Collective != program.AllToAll {
		return append(all, same(program.Blocks(counts(n, chunks, n))))
	}
	var send, recv [][]int
	for r := range p {
		send = append(send, counts(r, p, n))
	}
	for r := range p {
		c := make([]int, p)
		for s := range p {
			c[s] = send[s][r]
		}
		recv = append(recv, c)
	}
	ls := make([]program.Layout, p)
	for r := range ls {
		ls[r] = program.Exchange(send[r], recv[r])
	}
	return append(all, ls)
}

func uniform(k, n int) []int {
	c := make([]int, k)
	for i := range c {
		c[i] = n
	}
	return c
}

func generate(a *algorithm.Algorithm, pr algorithm.Params) []*program.Program {
	progs := make([]*program.Program, pr.P)
	for r := range progs {
		progs[r] = a.Generate(pr, r)
	}
	return progs
}

// requireTask runs a task and compares all ranks' results with the reference.
func requireTask(t *testing.T, m *team, k *task, where string) {
	t.Helper()
	ms, present, errs := m.run(k)
	for r, p := range k.progs {
		require.NoError(t, errs[r], where)
		off := k.layouts[r].Out
		for c := p.Out.Lo; c < p.Out.Hi; c++ {
			got := ms[r].out[(off[c]-off[p.Out.Lo])*k.kind.elem : (off[c+1]-off[p.Out.Lo])*k.kind.elem]
			want := k.want(r, c)
			if want == nil {
				require.False(t, present[r], "%s: rank %d", where, r)
				want = make([]byte, len(got)) // if no result is present, the output must not be changed
			} else {
				require.True(t, present[r], "%s: rank %d", where, r)
			}
			if len(got)+len(want) > 0 && string(got) != string(want) {
				require.Equal(t, want, got, "%s: rank %d chunk %d", where, r, c)
			}
		}
	}
}

// testAlgorithm compares the results of an algorithm with the reference, for all layouts and in
// all modes.
func testAlgorithm(t *testing.T, a *algorithm.Algorithm, p int, net network) {
	for root := range p {
		if !testsize.Soak && root > 0 && root < p-1 && root != p/2 {
			continue
		}
		pr := algorithm.Params{P: p, Root: root}
		if !a.Collective.Rooted() && root > 0 {
			break
		}
		if a.Supports(pr) != nil {
			continue
		}
		progs := generate(a, pr)
		for _, mode := range modes {
			m := newTeam(t, net(t, p), progs, mode.opt)
			for _, n := range lengths(a.Collective, p) {
				for i, ls := range layoutsFor(a, progs[0].Chunks, p, n) {
					for _, k := range []kind{floats, integers, matrices} {
						if a.Collective.Reduces() && !k.serves(a, p) || !a.Collective.Reduces() && k.name != integers.name {
							continue
						}
						for _, inPlace := range []bool{false, a.Collective != program.AllToAll || i == 0} {
							where := fmt.Sprintf("%s %s p=%d root=%d %s n=%d layout %d %s in place: %t",
								a.Collective, a.Name, p, root, mode.name, n, i, k.name, inPlace)
							requireTask(t, m, &task{progs: progs, kind: k, layouts: ls, inPlace: inPlace}, where)
						}
					}
				}
			}
			m.close()
		}
	}
}

func TestAllAlgorithms(t *testing.T) {
	for c := range program.NumCollectives {
		for _, a := range algorithm.For(c) {
			t.Run(fmt.Sprintf("%s/%s", c, a.Name), func(t *testing.T) {
				sizes := []int{1, 2, 3, 4, 5, 6, 7, 8, 9}
				if testsize.Race {
					sizes = []int{3, 8}
				}
				for _, p := range sizes {
					testAlgorithm(t, a, p, inMemory)
				}
			})
		}
	}
}
