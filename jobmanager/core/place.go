package core

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/superstep-ml/superstep/internal/wire"
)

// Policy says how the slots of a job are chosen among those that are free.
type Policy int

const (
	// Pack takes as few task managers as possible, so that most rows stay in one process.
	Pack Policy = iota
	// Spread takes as many as possible, with equal numbers of slots as far as possible, so that
	// the memory and cores of all are used.
	Spread
)

// String returns the policy in lower case.
func (p Policy) String() string {
	if p == Spread {
		return "spread"
	}
	return "pack"
}

// ParsePolicy is the inverse of String.
func ParsePolicy(text string) (Policy, error) {
	switch text {
	case "pack":
		return Pack, nil
	case "spread":
		return Spread, nil
	}
	return 0, fmt.Errorf("unknown placement policy %q: want pack or spread", text)
}

// Offer is a task manager as the scheduler sees it.
type Offer struct {
	ID       string
	Name     string
	Platform wire.Platform
	// Executable is the SHA-256 of its own program.
	Executable string
	Ailing     string // why it takes no new work, "" if it does
	Slots      int    // in all
	Free       int    // free for new work
}

// anyPlatform is the platform of jobs whose program every task manager has.
var anyPlatform wire.Platform

// Request is what a job wants.
type Request struct {
	Slots    int
	Platform wire.Platform // for which its program is built; zero: any
	// Executable is the executable that the task managers must run themselves, as they cannot
	// fetch it; "" if any will do.
	Executable string
	Policy     Policy
}

// Share is the part of a job on one task manager: one worker. Of every vertex it runs the
// subtasks whose indices are in Slots.
type Share struct {
	Offer int // index among the offers
	Slots wire.SlotRange
}

// Shortage is why a request could not be met.
type Shortage struct {
	Request
	TaskManagers int // task managers of the platform
	Total        int // their slots
	Free         int // their free slots
	// Others are the platforms of all task managers, in order, if none has the requested
	// platform.
	Others []wire.Platform
	// Ailing names a task manager that would suit but takes no work, and Why says why.
	Ailing, Why string
	// Before is how many jobs wait for the same slots and come first.
	Before int
}

// Missing returns how many more slots would have to be free.
func (s *Shortage) Missing() int { return max(0, s.Slots-s.Free) }

// String says what the job waits for and what is free.
func (s *Shortage) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: ", count(s.Slots, "slot"))
	of := ""
	if s.Platform != anyPlatform {
		of = " of " + s.Platform.String()
	}
	if s.Executable != "" {
		of += " that runs executable " + shortHash(s.Executable) + " itself"
	}
	switch {
	case s.TaskManagers == 0 && len(s.Others) == 0:
		b.WriteString("there is no task manager")
	case s.TaskManagers == 0 && s.Executable != "":
		fmt.Fprintf(&b, "there is no task manager%s, and the job manager cannot send it to others", of)
	case s.TaskManagers == 0:
		fmt.Fprintf(&b, "there is no task manager%s, which the job's program is built for, but of", of)
		for i, p := range s.Others {
			if i > 0 {
				b.WriteString(",")
			}
			fmt.Fprintf(&b, " %s", p)
		}
	case s.Total < s.Slots:
		fmt.Fprintf(&b, "the cluster has %s in all (%s%s), %d too few", count(s.Total, "slot"), count(s.TaskManagers, "task manager"), of, s.Slots-s.Total)
	default:
		fmt.Fprintf(&b, "%d of %d are free (%s%s)", s.Free, s.Total, count(s.TaskManagers, "task manager"), of)
	}
	if s.Ailing != "" {
		fmt.Fprintf(&b, "; task manager %s takes no work: %s", s.Ailing, s.Why)
	}
	if s.Before > 0 {
		fmt.Fprintf(&b, ", %s before it", count(s.Before, "job"))
	}
	return b.String()
}

// shortHash is the start of a hash, which is enough for people.
func shortHash(hash string) string { return hash[:min(len(hash), 12)] }

// count writes a number of things.
func count(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// Place chooses slots for a job among those offered, or says why it cannot. It is a
// pure function: the same offers in any order and the same request give the same task
// managers the same shares. Each task manager gets at most one worker, with a
// contiguous range of slots; workers are numbered by the names of their task managers.
//
// Cost: one sort of the offers.
func Place(offers []Offer, r Request) ([]Share, *Shortage) {
	short, fit := survey(offers, r)
	if short.Free < r.Slots || r.Slots < 1 {
		return nil, short
	}
	slices.SortFunc(fit, func(a, b int) int { return byRoom(offers[a], offers[b]) })
	taken := make([]int, len(offers))
	if r.Policy == Spread {
		spread(offers, fit, r.Slots, taken)
	} else {
		pack(offers, fit, r.Slots, taken)
	}
	return shares(offers, fit, taken), nil
}

// survey counts the slots for a request, and returns the indices of the offers that have free
// ones.
func survey(offers []Offer, r Request) (*Shortage, []int) {
	short := &Shortage{Request: r}
	var fit []int
	for i, o := range offers {
		if r.Platform != anyPlatform && o.Platform != r.Platform || r.Executable != "" && o.Executable != r.Executable {
			continue
		}
		short.TaskManagers++
		if short.Ailing == "" && o.Ailing != "" {
			short.Ailing, short.Why = o.Name, o.Ailing
		}
		short.Total += o.Slots
		short.Free += o.Free
		if o.Free > 0 {
			fit = append(fit, i)
		}
	}
	if short.TaskManagers == 0 {
		short.Others = platforms(offers)
	}
	return short, fit
}

// byRoom orders offers by free slots, most first; then by taken slots, most first, so that
// partly used task managers are filled; then by name.
func byRoom(a, b Offer) int {
	return cmp.Or(
		cmp.Compare(b.Free, a.Free),
		cmp.Compare(b.Slots-b.Free, a.Slots-a.Free),
		byName(a, b),
	)
}

func byName(a, b Offer) int { return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID)) }

// pack takes all slots of the offers with the most room until one offer can hold the rest,
// which gives the fewest task managers. It takes the rest from the offer where it fits most
// tightly, so that large gaps are left for large jobs. fit is in the order of byRoom.
func pack(offers []Offer, fit []int, want int, taken []int) {
	for k, i := range fit {
		if offers[i].Free < want {
			taken[i] = offers[i].Free
			want -= offers[i].Free
			continue
		}
		// The last offer with enough room for the rest has the least room. Of several with that
		// much room, the first has the most slots taken.
		last := k
		for m := k; m < len(fit) && offers[fit[m]].Free >= want; m++ {
			if offers[fit[m]].Free < offers[fit[last]].Free {
				last = m
			}
		}
		taken[fit[last]] = want
		return
	}
}

// spread takes the same number of slots of each offer, and all slots of an offer that has
// fewer. fit is in the order of byRoom; the remainder goes to the offers with the most room.
func spread(offers []Offer, fit []int, want int, taken []int) {
	for k := len(fit) - 1; k >= 0; k-- {
		i, left := fit[k], k+1
		level := want / left
		if offers[i].Free <= level {
			taken[i] = offers[i].Free
			want -= offers[i].Free
			continue
		}
		// All that are left have more free slots than the level.
		for m, j := range fit[:left] {
			taken[j] = level
			if m < want%left {
				taken[j]++
			}
		}
		return
	}
}

// shares numbers the slots in the order of names.
func shares(offers []Offer, fit, taken []int) []Share {
	slices.SortFunc(fit, func(a, b int) int { return byName(offers[a], offers[b]) })
	var all []Share
	lo := 0
	for _, i := range fit {
		if taken[i] == 0 {
			continue
		}
		all = append(all, Share{Offer: i, Slots: wire.SlotRange{Lo: lo, Hi: lo + taken[i]}})
		lo += taken[i]
	}
	return all
}

// platforms returns those of all offers, in order.
func platforms(offers []Offer) []wire.Platform {
	var all []wire.Platform
	for _, o := range offers {
		if !slices.Contains(all, o.Platform) {
			all = append(all, o.Platform)
		}
	}
	slices.SortFunc(all, comparePlatforms)
	return all
}

func comparePlatforms(a, b wire.Platform) int {
	return cmp.Or(cmp.Compare(a.OS, b.OS), cmp.Compare(a.Arch, b.Arch))
}
