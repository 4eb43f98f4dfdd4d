package core

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/superstep-ml/superstep/internal/humanize"
	"github.com/superstep-ml/superstep/internal/programs"
	"github.com/superstep-ml/superstep/internal/wire"
)

// Policy determines which of the free slots a job gets.
type Policy int

const (
	// Pack uses as few task managers as possible, so that most rows are exchanged within one
	// process.
	Pack Policy = iota
	// Spread uses as many task managers as possible, and numbers of slots that are as equal as
	// possible, so that the memory and cores of all task managers are used.
	Spread
)

// String returns the name of the policy.
func (p Policy) String() string {
	if p == Spread {
		return "spread"
	}
	return "pack"
}

// ParsePolicy returns the policy with the given name. It is the inverse of Policy.String.
func ParsePolicy(text string) (Policy, error) {
	switch text {
	case "pack":
		return Pack, nil
	case "spread":
		return Spread, nil
	}
	return 0, fmt.Errorf("unknown placement policy %q: want pack or spread", text)
}

// Offer describes the slots of a task manager to the scheduler.
type Offer struct {
	ID       string
	Name     string
	Platform wire.Platform
	// Executable is the SHA-256 of the task manager's own executable.
	Executable string
	Ailing     string // why the task manager takes no new work; "" if it takes new work
	Cordoned   bool   // the task manager gets no new workers; Free is 0 then
	Avoided    bool   // the slots of other task managers are used first
	Slots      int    // number of all slots, free or not
	Free       int    // number of slots that new work can use
}

// anyPlatform is the platform in the request of a job that any task manager can run.
var anyPlatform wire.Platform

// Request describes the slots that a job needs.
type Request struct {
	Slots    int
	Most     int           // largest number of slots that an elastic job can use; 0 means Slots
	Platform wire.Platform // platform for which the job's executable is built; zero means any platform
	// Executable, if it is not "", is the hash of an executable that task managers cannot
	// fetch: only task managers that themselves run this executable fit the request.
	Executable string
	Policy     Policy
	// Kept has the task managers, by ID, on which a process of the job's former attempt waits, with the
	// slots of the job that the process had. Was is the number of all slots that the job had then.
	Kept map[string]wire.SlotRange
	Was  int
}

// fits reports whether the slots of an offer can be used for the request.
func (r *Request) fits(o *Offer) bool {
	return (r.Platform == anyPlatform || o.Platform == r.Platform) && (r.Executable == "" || o.Executable == r.Executable)
}

// Share is the part of a job that one worker on one task manager runs. The worker runs the
// subtasks of every vertex whose indices are in Slots.
type Share struct {
	Offer int // index of the task manager's offer
	Slots wire.SlotRange
}

// Shortage describes why a request could not be satisfied.
type Shortage struct {
	Request
	TaskManagers int // number of task managers with the requested platform that are not cordoned
	Total        int // number of all slots of these task managers
	Free         int // number of free slots of these task managers
	// Cordoned has the names of the cordoned task managers with the requested platform, sorted
	// and without duplicates, and CordonedSlots the number of all their slots.
	Cordoned      []string
	CordonedSlots int
	// Others is set if no task manager has the requested platform: it has the platforms of all
	// task managers, sorted.
	Others []wire.Platform
	// Ailing is the name of a task manager that fits the request but takes no new work, and Why
	// is the reason for that.
	Ailing, Why string
	// Before is the number of jobs in front that wait for the same slots.
	Before int
}

// Missing returns how many more slots would have to be free to satisfy the request.
func (s *Shortage) Missing() int { return max(0, s.Slots-s.Free) }

// String returns text that says what the job waits for and which slots are free.
func (s *Shortage) String() string {
	var b strings.Builder
	if s.Most > s.Slots {
		fmt.Fprintf(&b, "%d to ", s.Slots)
	}
	fmt.Fprintf(&b, "%s: ", humanize.Count(max(s.Slots, s.Most), "slot"))
	of := ""
	if s.Platform != anyPlatform {
		of = " of " + s.Platform.String()
	}
	if s.Executable != "" {
		of += " that runs executable " + programs.Short(s.Executable) + " itself"
	}
	switch {
	case s.TaskManagers == 0 && len(s.Cordoned) > 0:
		fmt.Fprintf(&b, "there is no task manager%s that is not cordoned", of)
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
		all := "in all"
		if len(s.Cordoned) > 0 {
			all = "besides the cordoned ones"
		}
		fmt.Fprintf(&b, "the cluster has %s %s (%s%s), %d too few", humanize.Count(s.Total, "slot"), all, humanize.Count(s.TaskManagers, "task manager"), of, s.Slots-s.Total)
	default:
		fmt.Fprintf(&b, "%d of %d are free (%s%s)", s.Free, s.Total, humanize.Count(s.TaskManagers, "task manager"), of)
	}
	if len(s.Cordoned) > 0 {
		fmt.Fprintf(&b, "; %s on %s %s cordoned", humanize.Count(s.CordonedSlots, "slot"),
			named(s.Cordoned), map[bool]string{true: "is", false: "are"}[s.CordonedSlots == 1])
	}
	if s.Ailing != "" {
		fmt.Fprintf(&b, "; task manager %s takes no work: %s", s.Ailing, s.Why)
	}
	if s.Before > 0 {
		fmt.Fprintf(&b, ", %s before it", humanize.Count(s.Before, "job"))
	}
	return b.String()
}

// named returns text with the first of the names of task managers.
func named(names []string) string {
	if len(names) == 1 {
		return "task manager " + names[0]
	}
	return "task managers " + humanize.List(names, ", ", 4)
}

// Place chooses slots for request r among the offers. If there are not enough free slots, it
// returns a Shortage. It uses slots of avoided task managers only if the others do not have
// enough. It is a pure function. The share of each task manager does not depend on the order of
// the offers. Each task manager gets at most one worker, with a contiguous range of the job's
// slots. Workers are numbered in the order of the names of their task managers. If the job has kept
// processes, placeSurvivors chooses the slots, and arrange the numbers.
//
// Place takes O(n log n) time for n offers.
func Place(offers []Offer, r Request) ([]Share, *Shortage) {
	short, fit := survey(offers, r)
	if short.Free < r.Slots || r.Slots < 1 {
		return nil, short
	}
	if len(r.Kept) > 0 {
		return shares(offers, fit, placeSurvivors(offers, fit, r), r), nil
	}
	slices.SortFunc(fit, func(a, b int) int { return byRoom(offers[a], offers[b]) })
	taken := make([]int, len(offers))
	parts := byAvoidance(offers, fit)
	choose(offers, parts[:], r.Policy, r.Slots, taken)
	return shares(offers, fit, taken, r), nil
}

// choose takes slots of offers by a policy: those of the first part first, and of each later part if the
// parts before have too few. Each part has indices, sorted by byRoom. choose stores the number of slots of
// each offer in taken, and returns how many are missing.
func choose(offers []Offer, parts [][]int, policy Policy, want int, taken []int) int {
	for _, part := range parts {
		free := 0
		for _, i := range part {
			free += offers[i].Free
		}
		n := min(want, free)
		if want -= n; n == 0 {
			continue
		}
		if policy == Spread {
			spread(offers, part, n, taken)
		} else {
			pack(offers, part, n, taken)
		}
	}
	return want
}

// room returns how many of the free slots an elastic job gets: those that are not avoided, and its
// least in any case.
func room(offers []Offer, r Request) int {
	free, fit := survey(offers, r)
	good := 0
	for _, i := range byAvoidance(offers, fit)[0] {
		good += offers[i].Free
	}
	return max(good, min(free.Free, r.Slots))
}

// byAvoidance divides the indices in fit into those of offers that are not avoided and those of
// the others. Both keep the order of fit.
func byAvoidance(offers []Offer, fit []int) (parts [2][]int) {
	for _, i := range fit {
		k := 0
		if offers[i].Avoided {
			k = 1
		}
		parts[k] = append(parts[k], i)
	}
	return parts
}

// survey counts the slots that fit a request, and returns the indices of the fitting offers
// that have free slots.
func survey(offers []Offer, r Request) (*Shortage, []int) {
	short := &Shortage{Request: r}
	var fit []int
	for i, o := range offers {
		if !r.fits(&o) {
			continue
		}
		if o.Cordoned {
			short.Cordoned = append(short.Cordoned, o.Name)
			short.CordonedSlots += o.Slots
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
	slices.Sort(short.Cordoned)
	short.Cordoned = slices.Compact(short.Cordoned)
	if short.TaskManagers == 0 && len(short.Cordoned) == 0 {
		short.Others = platforms(offers)
	}
	return short, fit
}

// byRoom orders offers by the number of free slots, then by the number of taken slots, both in
// descending order, and then by name. So among offers with equal numbers of free slots, task
// managers that are partly used come first.
func byRoom(a, b Offer) int {
	return cmp.Or(
		cmp.Compare(b.Free, a.Free),
		cmp.Compare(b.Slots-b.Free, a.Slots-a.Free),
		byName(a, b),
	)
}

func byName(a, b Offer) int { return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID)) }

// pack takes all free slots of the offers with the most free slots, until one offer has enough
// free slots for the rest. This gives the fewest task managers. Of the offers with enough free
// slots, pack takes the rest from one with the fewest, so that offers with many free slots are
// left for large jobs. fit has the indices of the fitting offers, sorted by byRoom. pack adds
// the number of slots of each offer to taken.
func pack(offers []Offer, fit []int, want int, taken []int) {
	for k, i := range fit {
		if offers[i].Free < want {
			taken[i] = offers[i].Free
			want -= offers[i].Free
			continue
		}
		// Among the offers with enough free slots for the rest, choose one with the fewest free
		// slots. Of several such offers, the first has the most slots taken.
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

// spread takes the same number of slots from each offer, or all free slots of an offer that has
// fewer. The remainder of the division is taken from the offers with the most free slots, as
// fit is sorted by byRoom.
func spread(offers []Offer, fit []int, want int, taken []int) {
	for k := len(fit) - 1; k >= 0; k-- {
		i, left := fit[k], k+1
		level := want / left
		if offers[i].Free <= level {
			taken[i] = offers[i].Free
			want -= offers[i].Free
			continue
		}
		// All remaining offers have more than level free slots.
		for m, j := range fit[:left] {
			taken[j] = level
			if m < want%left {
				taken[j]++
			}
		}
		return
	}
}

// shares returns the share of each offer from which slots were taken. It assigns the slots of
// the job in the order of the names of the task managers, or as arrange says for a job with kept processes.
func shares(offers []Offer, fit, taken []int, r Request) []Share {
	fit = slices.DeleteFunc(fit, func(i int) bool { return taken[i] == 0 })
	slices.SortFunc(fit, func(a, b int) int { return byName(offers[a], offers[b]) })
	if len(r.Kept) > 0 {
		fit = arranged(offers, fit, taken, r)
	}
	var all []Share
	lo := 0
	for _, i := range fit {
		all = append(all, Share{Offer: i, Slots: wire.SlotRange{Lo: lo, Hi: lo + taken[i]}})
		lo += taken[i]
	}
	return all
}

// arranged returns the indices in fit in the order that arrange chooses.
func arranged(offers []Offer, fit, taken []int, r Request) []int {
	counts, former := make([]int, len(fit)), make([]wire.SlotRange, len(fit))
	for k, i := range fit {
		counts[k], former[k] = taken[i], r.Kept[offers[i].ID]
	}
	order := arrange(counts, former, r.Was)
	for k, m := range order {
		order[k] = fit[m]
	}
	return order
}

// platforms returns the distinct platforms of all offers, sorted.
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
