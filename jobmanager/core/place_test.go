package core

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/superstep-ml/superstep/internal/wire"
)

func ExamplePlace() {
	offers := []Offer{
		{Name: "a", Slots: 4, Free: 2},
		{Name: "b", Slots: 4, Free: 4},
		{Name: "c", Slots: 4, Free: 4},
	}
	for _, policy := range []Policy{Pack, Spread} {
		shares, _ := Place(offers, Request{Slots: 6, Policy: policy})
		fmt.Print(policy, ":")
		for _, s := range shares {
			fmt.Printf(" %s %v", offers[s.Offer].Name, s.Slots)
		}
		fmt.Println()
	}
	_, short := Place(offers, Request{Slots: 11})
	fmt.Println("waiting for", short)
	// Output:
	// pack: a {0 2} b {2 6}
	// spread: a {0 2} b {2 4} c {4 6}
	// waiting for 11 slots: 10 of 12 are free (3 task managers)
}

func drawOffers(t *rapid.T) []Offer {
	platforms := []wire.Platform{{OS: "linux", Arch: "amd64"}, {OS: "linux", Arch: "arm64"}}
	offers := make([]Offer, rapid.IntRange(0, 6).Draw(t, "task managers"))
	for i := range offers {
		slots := rapid.IntRange(1, 5).Draw(t, "slots")
		offers[i] = Offer{
			ID:       fmt.Sprint("id", i),
			Name:     fmt.Sprint("n", rapid.IntRange(0, 3).Draw(t, "name")),
			Platform: rapid.SampledFrom(platforms).Draw(t, "platform"),
			Slots:    slots,
			Free:     rapid.IntRange(0, slots).Draw(t, "free"),
			Avoided:  rapid.IntRange(0, 2).Draw(t, "avoided") == 0,
		}
		if rapid.IntRange(0, 5).Draw(t, "cordoned") == 0 {
			offers[i].Cordoned, offers[i].Free = true, 0
		}
	}
	return offers
}

// fewest returns the least number of task managers that together have at least want free slots.
// It tries all subsets of the offers.
func fewest(offers []Offer, want int) int {
	best := len(offers) + 1
	for set := range 1 << len(offers) {
		free, n := 0, 0
		for i := range offers {
			if set>>i&1 == 1 {
				free += offers[i].Free
				n++
			}
		}
		if free >= want {
			best = min(best, n)
		}
	}
	return best
}

func TestPlace(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		offers := drawOffers(t)
		r := Request{Slots: rapid.IntRange(1, 20).Draw(t, "want"), Policy: Policy(rapid.IntRange(0, 1).Draw(t, "policy"))}
		if rapid.Bool().Draw(t, "picky") {
			r.Platform = wire.Platform{OS: "linux", Arch: "arm64"}
		}
		var fit, liked, avoided []Offer
		free, likedFree, cordoned := 0, 0, 0
		for _, o := range offers {
			if r.Platform != (wire.Platform{}) && r.Platform != o.Platform {
				continue
			}
			fit = append(fit, o)
			free += o.Free
			if o.Cordoned {
				cordoned += o.Slots
			}
			if o.Avoided {
				avoided = append(avoided, o)
			} else {
				liked = append(liked, o)
				likedFree += o.Free
			}
		}
		before := slices.Clone(offers)
		shares, short := Place(offers, r)
		require.Equal(t, before, offers)
		if free < r.Slots {
			require.Nil(t, shares)
			require.Equal(t, r.Slots-free, short.Missing())
			require.NotEmpty(t, short.String())
			require.Equal(t, cordoned, short.CordonedSlots)
			require.Equal(t, cordoned > 0, strings.Contains(short.String(), fmt.Sprintf("%d slot", cordoned)) && strings.HasSuffix(short.String(), "cordoned"))
			return
		}
		require.Nil(t, short)
		next, names, seen := 0, []string{}, map[int]bool{}
		taken := make([]int, len(offers))
		for _, s := range shares {
			require.Equal(t, next, s.Slots.Lo, "the ranges of slots must be contiguous")
			require.Less(t, s.Slots.Lo, s.Slots.Hi)
			require.False(t, seen[s.Offer], "a task manager must get at most one worker")
			require.Contains(t, fit, offers[s.Offer])
			seen[s.Offer] = true
			taken[s.Offer] = s.Slots.Hi - s.Slots.Lo
			require.LessOrEqual(t, taken[s.Offer], offers[s.Offer].Free)
			names = append(names, offers[s.Offer].Name+offers[s.Offer].ID)
			next = s.Slots.Hi
		}
		require.Equal(t, r.Slots, next)
		require.True(t, slices.IsSorted(names))
		// Avoided task managers get only the slots that others do not have.
		rest := max(0, r.Slots-likedFree)
		took := 0
		for i, o := range offers {
			if o.Avoided {
				took += taken[i]
			}
		}
		require.Equal(t, rest, took)
		if r.Policy == Pack {
			require.Len(t, shares, fewest(liked, r.Slots-rest)+fewest(avoided, rest))
		} else {
			// If a task manager has free slots left, no other task manager may have got two or
			// more slots more than it.
			for i := range offers {
				for k, o := range offers {
					if taken[i] > taken[k]+1 && slices.Contains(fit, o) && o.Avoided == offers[i].Avoided {
						require.Equal(t, o.Free, taken[k])
					}
				}
			}
		}
		// The result must not depend on the order of the offers.
		order := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1)).Perm(len(offers))
		shuffled := make([]Offer, len(offers))
		for i, k := range order {
			shuffled[i] = offers[k]
		}
		again, _ := Place(shuffled, r)
		require.Len(t, again, len(shares))
		for i := range shares {
			require.Equal(t, offers[shares[i].Offer], shuffled[again[i].Offer])
			require.Equal(t, shares[i].Slots, again[i].Slots)
		}
	})
}

// TestPackPrefers checks which task managers Pack chooses if several sets of the same smallest
// size have enough slots.
func TestPackPrefers(t *testing.T) {
	name := func(free ...int) string {
		var offers []Offer
		for i, f := range free {
			offers = append(offers, Offer{Name: string(rune('a' + i)), Slots: 8, Free: f})
		}
		shares, _ := Place(offers, Request{Slots: 3})
		text := ""
		for _, s := range shares {
			text += fmt.Sprint(offers[s.Offer].Name, s.Slots.Hi-s.Slots.Lo)
		}
		return text
	}
	require.Equal(t, "b3", name(8, 3, 4), "Pack must choose the task manager with the fewest free slots that are enough")
	require.Equal(t, "a3", name(4, 4), "Pack must choose the first of equal task managers by name")
	require.Equal(t, "b2c1", name(0, 2, 1), "Pack must take the rest from the task manager with the fewest free slots that are enough")
	offers := []Offer{{Name: "a", Slots: 4, Free: 4}, {Name: "b", Slots: 6, Free: 4}}
	shares, _ := Place(offers, Request{Slots: 2})
	require.Equal(t, []Share{{Offer: 1, Slots: wire.SlotRange{Lo: 0, Hi: 2}}}, shares, "Pack must choose the task manager that is partly used")
}

func TestPolicyText(t *testing.T) {
	for _, p := range []Policy{Pack, Spread} {
		got, err := ParsePolicy(p.String())
		require.NoError(t, err)
		require.Equal(t, p, got)
	}
	_, err := ParsePolicy("random")
	require.ErrorContains(t, err, `unknown placement policy "random": want pack or spread`)
}

// BenchmarkPlace places 10,000 subtasks on 1,000 task managers.
func BenchmarkPlace(b *testing.B) {
	rng := rand.New(rand.NewPCG(1, 2))
	offers := make([]Offer, 1000)
	for i := range offers {
		slots := 10 + rng.IntN(20)
		offers[i] = Offer{ID: fmt.Sprint("id-", i), Name: fmt.Sprint("tm-", rng.IntN(1<<20)), Slots: slots, Free: slots - rng.IntN(8)}
	}
	for _, policy := range []Policy{Pack, Spread} {
		b.Run(policy.String(), func(b *testing.B) {
			for b.Loop() {
				if _, short := Place(offers, Request{Slots: 10_000, Policy: policy}); short != nil {
					b.Fatal(short)
				}
			}
		})
	}
}

// BenchmarkHeartbeats processes the heartbeats of 1,000 task managers while one job runs on all
// of them and 1,000 other jobs wait.
func BenchmarkHeartbeats(b *testing.B) {
	const taskManagers = 1000
	c := New(Config{})
	deployed := make([]wire.WorkerRef, taskManagers+1)
	for i := 1; i <= taskManagers; i++ {
		c.Step(0, Registered{Conn: i, Register: wire.Register{Version: wire.Version, ID: fmt.Sprintf("id-%04d", i), Incarnation: "1", Slots: 10, Executable: anyHash}})
	}
	c.Step(0, Submitted{ID: "j", Slots: taskManagers * 10})
	for _, e := range c.Step(0, Persisted{ID: "j", Attempt: 1}) {
		if s, ok := e.(Send); ok {
			deployed[s.Conn] = s.Message.Deploy.WorkerRef
		}
	}
	for i := range 1000 {
		c.Step(0, Submitted{ID: wire.JobID(fmt.Sprint("w", i)), Slots: 1})
	}
	now, n := time.Duration(0), 0
	running := make([][]wire.WorkerRef, taskManagers+1)
	for i := range running {
		running[i] = deployed[i : i+1]
	}
	b.ReportAllocs()
	for b.Loop() {
		n++
		conn := n%taskManagers + 1
		if effects := c.Step(now, Heartbeat{Conn: conn, Heartbeat: wire.Heartbeat{Number: uint64(n), Running: running[conn]}}); len(effects) != 1 {
			b.Fatal(effects)
		}
		if n%200 == 0 { // if 1,000 task managers send a heartbeat every 500 ms, there are 200 heartbeats per tick
			now += TickEvery
			c.Step(now, Tick{})
		}
	}
	b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "heartbeats/s")
}

// BenchmarkDeploy measures the processing of a job of 10,000 slots on 1,000 task managers, from
// its submission until it runs.
func BenchmarkDeploy(b *testing.B) {
	const taskManagers = 1000
	for b.Loop() {
		c := New(Config{})
		for i := 1; i <= taskManagers; i++ {
			c.Step(0, Registered{Conn: i, Register: wire.Register{Version: wire.Version, ID: fmt.Sprintf("id-%04d", i), Incarnation: "1", Slots: 10, Executable: anyHash}})
		}
		c.Step(0, Submitted{ID: "j", Slots: taskManagers * 10})
		effects := c.Step(0, Persisted{ID: "j", Attempt: 1})
		for _, e := range effects {
			if s, ok := e.(Send); ok {
				c.Step(0, Reported{Conn: s.Conn, WorkerEvent: wire.WorkerEvent{WorkerRef: s.Message.Deploy.WorkerRef, Ready: &wire.Ready{Address: "h:1"}}})
			}
		}
		c.Step(0, Reported{Conn: 1, WorkerEvent: wire.WorkerEvent{WorkerRef: wire.WorkerRef{Job: "j", Attempt: 1}, Prepared: &wire.Prepared{}}})
		if j, _ := c.Job("j"); j.State != wire.JobRunning {
			b.Fatal(j.State)
		}
	}
}
