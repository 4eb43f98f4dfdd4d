package core

import (
	"cmp"
	"slices"
)

// Claim is what one job has of the slots, and what it may have.
type Claim struct {
	// Request has the smallest number of slots that the job may have as Slots, and the largest as
	// Most.
	Request
	// On has the slots that the job has, by offer. It is nil if the job waits.
	On []int
	// Adjustable says that the number of slots can be changed while the job runs.
	Adjustable bool
	// Line is the position of the job among those that wait; lower comes first. Claims with the same
	// Line are in the order of the claims.
	Line int
	// Priority is higher for jobs that get more than their least first, and give it back last.
	Priority int
}

// Balance returns how many slots each job should have. Claims are in the order in which their jobs
// were submitted. The policy is:
//
//   - Jobs get the least that they may have first, in the order of the line. If the free slots are
//     not enough, jobs that have more than their least give some back: those of the lowest priority
//     first, and of these the job that was submitted last.
//   - If even that is not enough, the job waits, nobody gives back anything for it, and no job behind
//     it of the same platform gets slots. A job that needs more slots than there are waits for task
//     managers; it holds up nobody.
//   - Slots that are free after that go to the jobs by priority, and in the order of submission, up to
//     the most that they may have, unless a job waits for slots of the same platform. Slots of avoided
//     task managers are left free.
//
// Nobody gives back slots of its least, so that no job stops another, whatever their priorities. A job
// starves only if a job in front, or a job that cannot be adjusted, never ends: a job gets its turn as
// soon as the jobs before it have their least. Balance is a pure function. The number of a job that is
// neither adjustable nor waiting stays what it is, and that of a waiting job is 0 if it has to wait.
func Balance(offers []Offer, claims []Claim) []int {
	b := balance{offers: offers, claims: claims, slots: make([]int, len(claims)), given: make([]int, len(claims)), free: make([]int, len(offers))}
	b.rank = b.sorted(func(a, c *Claim) int { return cmp.Compare(c.Priority, a.Priority) })
	for i, o := range offers {
		b.free[i] = o.Free
	}
	for i := range claims {
		b.slots[i] = b.held(i, nil)
	}
	for _, i := range b.sorted(func(a, c *Claim) int { return cmp.Compare(a.Line, c.Line) }) {
		b.giveLeast(i)
	}
	for _, i := range b.rank {
		b.giveMore(i)
	}
	return b.slots
}

// sorted returns the indices of the claims, sorted. Equal ones are in the order of the claims.
func (b *balance) sorted(compare func(a, c *Claim) int) []int {
	all := make([]int, len(b.claims))
	for i := range all {
		all[i] = i
	}
	slices.SortStableFunc(all, func(i, k int) int { return compare(&b.claims[i], &b.claims[k]) })
	return all
}

// balance is the state of one call of Balance.
type balance struct {
	offers []Offer
	claims []Claim
	rank   []int // claims by priority, and in the order of submission
	slots  []int // result so far, by claim
	given  []int // number of slots that each claim has given back
	free   []int // free slots that nobody was given, by offer
	line   queue // jobs that wait for slots
	fed    queue // jobs for which others gave back slots
}

// fits returns the offers that fit request r.
func (b *balance) fits(r Request) []int {
	var fit []int
	for i, o := range b.offers {
		if r.fits(&o) && !o.Cordoned {
			fit = append(fit, i)
		}
	}
	return fit
}

// held returns how many of the given offers' slots the job of claim i has; nil means all offers.
func (b *balance) held(i int, fit []int) (n int) {
	on := b.claims[i].On
	if fit == nil {
		for _, k := range on {
			n += k
		}
		return n
	}
	for _, k := range fit {
		if k < len(on) {
			n += on[k]
		}
	}
	return n
}

// giveLeast gives the job of claim i the least that it may have.
func (b *balance) giveLeast(i int) {
	c := &b.claims[i]
	need := c.Slots - b.slots[i]
	if need <= 0 {
		if c.Adjustable {
			b.slots[i] = min(b.slots[i], max(c.Most, c.Slots))
		}
		return
	}
	if c.On != nil && !c.Adjustable {
		return
	}
	fit := b.fits(c.Request)
	total, free := 0, 0
	for _, k := range fit {
		total, free = total+b.offers[k].Slots, free+b.free[k]
	}
	switch {
	case b.line.before(c.Platform) > 0 || total < c.Slots:
		if total >= c.Slots {
			b.line.join(c.Platform)
		}
	case need <= free:
		b.take(fit, need)
		b.slots[i] += need
	case b.giveBack(i, fit, need-free):
		b.take(fit, free)
		b.slots[i] += need
		b.fed.join(c.Platform)
	default:
		b.line.join(c.Platform)
	}
}

// giveBack takes n slots from jobs that have more than their least, if they have that many on the
// offers fit that the job of claim i can use.
func (b *balance) giveBack(i int, fit []int, n int) bool {
	given := make([]int, len(b.claims))
	usable := slices.DeleteFunc(slices.Clone(fit), func(i int) bool { return b.offers[i].Ailing != "" })
	for _, k := range slices.Backward(b.rank) {
		if c := &b.claims[k]; k != i && c.Adjustable && n > 0 {
			given[k] = max(0, min(n, b.slots[k]-c.Slots, b.held(k, usable)-b.given[k]))
			n -= given[k]
		}
	}
	if n > 0 {
		return false
	}
	for k, s := range given {
		b.slots[k] -= s
		b.given[k] += s
	}
	return true
}

// giveMore gives the job of claim i free slots, up to the most that it may have.
func (b *balance) giveMore(i int) {
	c := &b.claims[i]
	more := c.Most - b.slots[i]
	if b.slots[i] < c.Slots || c.On != nil && !c.Adjustable || more <= 0 || b.line.before(c.Platform)+b.fed.before(c.Platform) > 0 {
		return
	}
	fit := byAvoidance(b.offers, b.fits(c.Request))[0]
	free := 0
	for _, k := range fit {
		free += b.free[k]
	}
	more = min(more, free)
	b.take(fit, more)
	b.slots[i] += more
}

// take takes n of the free slots of the offers fit.
func (b *balance) take(fit []int, n int) {
	for _, k := range fit {
		s := min(n, b.free[k])
		b.free[k] -= s
		n -= s
	}
}
