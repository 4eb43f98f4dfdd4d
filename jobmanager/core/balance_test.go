package core

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/superstep-ml/superstep/internal/wire"
)

var (
	linux  = wire.Platform{OS: "linux", Arch: "amd64"}
	darwin = wire.Platform{OS: "darwin", Arch: "arm64"}
)

// waiting returns the claim of a job that waits for slots.
func waiting(least, most int) Claim {
	return Claim{Request: Request{Slots: least, Most: most}}
}

// runningOn returns the claim of a job that runs and whose number of slots can be changed.
func runningOn(least, most int, on ...int) Claim {
	return Claim{Request: Request{Slots: least, Most: most}, On: on, Adjustable: true}
}

// inLine returns a claim with a place in the line and a priority.
func inLine(line, priority int, c Claim) Claim {
	c.Line, c.Priority = line, priority
	return c
}

func TestBalance(t *testing.T) {
	free := func(slots ...int) (offers []Offer) { // each task manager has 4 slots
		for i, n := range slots {
			offers = append(offers, Offer{ID: fmt.Sprint(i), Platform: linux, Slots: 4, Free: n})
		}
		return offers
	}
	cordoned := free(4, 4)
	cordoned[1].Cordoned = true
	ailing, avoided := free(0, 4), free(4, 4)
	ailing[0].Ailing, avoided[1].Avoided = "its disk is full", true
	mixed := free(0, 4)
	mixed[1].Platform = darwin
	cordoned0 := free(0, 0)
	cordoned0[0].Cordoned = true
	onLinux := waiting(2, 2)
	onLinux.Platform = linux
	fixed := runningOn(3, 3, 3)
	fixed.Adjustable = false
	for name, c := range map[string]struct {
		offers []Offer
		claims []Claim
		want   []int
	}{
		"free slots go to the first jobs":                     {free(4, 4), []Claim{runningOn(1, 4, 1), runningOn(1, 8, 1), runningOn(1, 8, 1)}, []int{4, 6, 1}},
		"who waits gets the least first":                      {free(4, 0), []Claim{waiting(1, 8), waiting(2, 8)}, []int{2, 2}},
		"the last job gives back first":                       {free(0, 0), []Claim{runningOn(1, 4, 4, 0), runningOn(1, 4, 0, 4), waiting(2, 2)}, []int{4, 2, 2}},
		"several jobs give back":                              {free(0, 0), []Claim{runningOn(2, 4, 4, 0), runningOn(1, 4, 0, 4), waiting(5, 5)}, []int{2, 1, 5}},
		"nobody gives back for a job that waits nevertheless": {free(0, 0), []Claim{runningOn(2, 4, 4, 0), runningOn(2, 4, 0, 4), waiting(5, 5)}, []int{4, 4, 0}},
		"a job in front is not passed":                        {free(1, 0), []Claim{waiting(3, 3), waiting(1, 1)}, []int{0, 0}},
		"a job for which there are too few passes":            {free(1, 0), []Claim{waiting(9, 9), waiting(1, 1)}, []int{0, 1}},
		"nobody grows while a job waits":                      {free(1, 0), []Claim{runningOn(1, 8, 3), waiting(7, 7)}, []int{3, 0}},
		"nobody grows into what others gave back":             {free(1, 0), []Claim{runningOn(3, 9, 0, 3), runningOn(1, 3, 3, 0), waiting(2, 4)}, []int{3, 2, 2}},
		"a cordoned task manager gives nothing":               {cordoned, []Claim{runningOn(1, 8, 0, 2)}, []int{6}},
		"slots on a cordoned task manager do not help":        {cordoned, []Claim{runningOn(1, 8, 0, 2), waiting(4, 4), waiting(1, 1)}, []int{2, 4, 0}},
		"slots on an ailing task manager do not help":         {ailing, []Claim{runningOn(1, 8, 4), waiting(5, 5)}, []int{4, 0}},
		"slots of an avoided task manager are left":           {avoided, []Claim{runningOn(1, 8, 2)}, []int{6}},
		"the least may be on an avoided task manager":         {avoided, []Claim{waiting(5, 8)}, []int{5}},
		"slots of another platform do not help":               {mixed, []Claim{runningOn(1, 4, 0, 2), onLinux}, []int{2, 0}},
		"slots of another platform stay":                      {mixed, []Claim{runningOn(1, 4, 2, 2), onLinux}, []int{2, 2}},
		"more than the most":                                  {free(0, 0), []Claim{runningOn(1, 2, 3)}, []int{2}},
		"fewer than the least":                                {free(1, 0), []Claim{runningOn(4, 4, 2), runningOn(1, 4, 0, 4)}, []int{4, 3}},
		"fewer than the least, and no more are there":         {free(1, 0), []Claim{runningOn(4, 4, 2), fixed}, []int{2, 3}},
		"fewer than the least, and there will not be more":    {free(1, 4), []Claim{runningOn(9, 9, 3)}, []int{3}},
		"a job that cannot be adjusted":                       {free(4, 1), []Claim{fixed}, []int{3}},
		"slots on a cordoned task manager do not help twice":  {cordoned0, []Claim{runningOn(1, 8, 4, 4), waiting(4, 4), waiting(3, 3)}, []int{4, 4, 0}},
		"the line decides who gets the least first":           {free(2, 0), []Claim{inLine(1, 0, waiting(2, 2)), inLine(0, 0, waiting(2, 2))}, []int{0, 2}},
		"a job in front of the line is not passed":            {free(2, 0), []Claim{inLine(1, 0, waiting(1, 1)), inLine(0, 0, waiting(4, 4))}, []int{0, 0}},
		"free slots go to higher priorities first":            {free(4, 0), []Claim{runningOn(1, 8, 1), inLine(0, 1, runningOn(1, 4, 1)), runningOn(1, 8, 1)}, []int{2, 4, 1}},
		"lower priorities give back first":                    {free(0, 0), []Claim{inLine(0, -1, runningOn(1, 4, 4, 0)), runningOn(1, 4, 0, 4), waiting(2, 2)}, []int{2, 4, 2}},
		"higher priorities give back to the least of others":  {free(0, 0), []Claim{inLine(0, 5, runningOn(2, 4, 4, 0)), inLine(0, 5, runningOn(4, 4, 0, 4)), inLine(1, -5, waiting(2, 2))}, []int{2, 4, 2}},
		"nobody gives back the least to a higher priority":    {free(0, 0), []Claim{inLine(0, -5, runningOn(4, 4, 4, 0)), inLine(0, -5, runningOn(3, 4, 0, 4)), inLine(0, 5, waiting(2, 2))}, []int{4, 4, 0}},
		"nothing": {nil, nil, []int{}},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, c.want, Balance(c.offers, c.claims)) })
	}
}

// TestBalanceOfAnything requires of any result of Balance that jobs have numbers that they may have,
// that there are as many slots, that a job gives back slots only for others, that no job that waits is
// passed by, and that higher priorities get more first and give back last.
func TestBalanceOfAnything(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		offers := make([]Offer, rapid.IntRange(0, 4).Draw(t, "task managers"))
		for i := range offers {
			offers[i] = Offer{ID: fmt.Sprint(i), Slots: rapid.IntRange(1, 6).Draw(t, "slots"), Cordoned: rapid.IntRange(0, 5).Draw(t, "cordoned") == 0}
			offers[i].Free = offers[i].Slots
		}
		claims := make([]Claim, rapid.IntRange(0, 6).Draw(t, "jobs"))
		for i := range claims {
			c := &claims[i]
			c.Slots = rapid.IntRange(1, 6).Draw(t, "least")
			c.Most = c.Slots + rapid.IntRange(0, 4).Draw(t, "more")
			c.Line, c.Priority = rapid.IntRange(0, 3).Draw(t, "line"), rapid.IntRange(-1, 1).Draw(t, "priority")
			if rapid.Bool().Draw(t, "waits") {
				continue
			}
			c.Adjustable = rapid.Bool().Draw(t, "adjustable")
			c.On = make([]int, len(offers))
			for k := range offers {
				c.On[k] = rapid.IntRange(0, offers[k].Free).Draw(t, "on")
				offers[k].Free -= c.On[k]
			}
			if sum(c.On) == 0 {
				c.On, c.Adjustable = nil, false
			}
		}
		for i := range offers {
			if offers[i].Cordoned {
				offers[i].Free = 0
			}
		}
		free := 0
		for _, o := range offers {
			free += o.Free
		}
		slots := Balance(slices.Clone(offers), claims)
		require.Equal(t, slots, Balance(offers, claims), "the result must depend on the arguments alone")
		had, has, fed := 0, 0, false
		for i, c := range claims {
			before := sum(c.On)
			had, has = had+before, has+slots[i]
			switch {
			case c.On == nil && slots[i] > 0:
				require.GreaterOrEqual(t, slots[i], c.Slots)
				require.LessOrEqual(t, slots[i], c.Most)
				fed = true
			case c.On == nil:
			case !c.Adjustable:
				require.Equal(t, before, slots[i])
			default:
				require.True(t, slots[i] >= c.Slots && slots[i] <= c.Most || slots[i] == before && before < c.Slots, "%d slots for job %d", slots[i], i)
				fed = fed || slots[i] > before && before < c.Slots
			}
		}
		require.LessOrEqual(t, has-had, free)
		requireLine(t, offers, claims, slots)
		requirePriorities(t, offers, claims, slots)
		for i, c := range claims {
			if before := sum(c.On); c.Adjustable && slots[i] < min(before, c.Most) {
				require.True(t, fed, "job %d gives back %d slots, and nobody gets them", i, before-slots[i])
			}
		}
	})
}

// requireLine requires that a job that waits in vain, although the cluster has slots for it, is passed by
// no job behind it.
func requireLine(t *rapid.T, offers []Offer, claims []Claim, slots []int) {
	total := 0
	for _, o := range offers {
		if !o.Cordoned {
			total += o.Slots
		}
	}
	for i, c := range claims {
		if c.On != nil || slots[i] > 0 || c.Slots > total {
			continue
		}
		for k, later := range claims {
			if later.Line < c.Line || later.Line == c.Line && k < i {
				continue
			}
			require.True(t, later.On != nil || slots[k] == 0, "job %d waits for %d slots, and job %d behind it gets %d", i, c.Slots, k, slots[k])
			require.LessOrEqual(t, slots[k], max(sum(later.On), 0), "job %d waits for %d slots, and job %d gets more than it has", i, c.Slots, k)
		}
	}
}

// requirePriorities requires that no job gets more than its least while a job of a higher priority, or
// an earlier one of the same, could get more, and that no job gives back slots while a job of a lower
// priority has some to give back.
func requirePriorities(t *rapid.T, offers []Offer, claims []Claim, slots []int) {
	ahead := func(i, k int) bool {
		a, b := claims[i].Priority, claims[k].Priority
		return a > b || a == b && i < k
	}
	for i, c := range claims {
		usable := 0
		for k, n := range c.On {
			if !offers[k].Cordoned {
				usable += n
			}
		}
		before := sum(c.On)
		for k, other := range claims {
			if !ahead(k, i) {
				continue
			}
			if grows := slots[i] > max(before, c.Slots); grows && slots[k] >= other.Slots && (other.On == nil || other.Adjustable) {
				require.GreaterOrEqual(t, slots[k], other.Most, "job %d gets more than its least, and job %d could", i, k)
			}
			gives := other.Adjustable && slots[k] < min(sum(other.On), other.Most)
			if gives && c.Adjustable && min(before, c.Most) > c.Slots {
				require.True(t, slots[i] == c.Slots || before-slots[i] >= usable, "job %d gives back slots, and job %d has %d that it need not have", k, i, slots[i]-c.Slots)
			}
		}
	}
}

func sum(all []int) (n int) {
	for _, k := range all {
		n += k
	}
	return n
}
