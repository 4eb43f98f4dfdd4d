package core

import (
	"slices"
	"time"

	"github.com/superstep-ml/superstep/internal/wire"
)

// schedule gives slots to the waiting jobs, in the order of the line (priority.go). If a job does not
// get its slots, no job behind it gets slots of the same platform, even if there are enough for that
// job. Otherwise a large job could wait for ever while small jobs run. A job that needs more
// slots than the cluster has does not block others, because it waits for task managers and
// not for slots. If a job has to wait for a time before it may use its slots, as one that is
// restarting, schedule only reserves the slots. Elastic jobs get their least first. The slots that are free after that go to
// them by priority, and in the order of submission, unless another job waits for slots of the platform.
func (c *Core) schedule() {
	if !slices.ContainsFunc(c.live, c.inLine) {
		return
	}
	offers := c.offers()
	line := queue{}
	var grants []*grant
	for _, j := range c.line() {
		if !c.inLine(j) {
			continue
		}
		request := c.request(j)
		shares, short := j.find(&line, c.unkept(offers, j, grants), request)
		if short != nil {
			shares, short = j.find(&line, offers, request)
		}
		if short == nil {
			reserve(offers, shares, 1)
			grants = append(grants, &grant{j, request, shares})
			continue
		}
		if request.Slots <= short.Total {
			line.join(request.Platform) // a job that needs more slots than the cluster has is not counted, so it blocks no others
		}
		detail := "waiting for " + short.String()
		if j.resume.due {
			detail = j.resume.cause() + "; to go on with that it is " + detail
		}
		if j.waits() && detail != j.info.Detail {
			j.info.Detail = detail
			c.emit(Changed{Job: j.snapshot()})
		}
	}
	if len(grants) > 0 {
		c.reserveRestarting(offers)
	}
	for _, g := range c.byPriority(grants) {
		if g.request.Most > g.request.Slots && line.before(g.request.Platform) == 0 {
			g.extend(offers)
		}
	}
	for _, g := range grants {
		if g.job.waits() {
			c.place(g.job, g.shares)
		}
	}
}

// unkept returns the offers without the slots of processes that have the states of other jobs without
// checkpoints, which have changed their slots on purpose. The jobs of grants have their slots already.
func (c *Core) unkept(offers []Offer, j *job, grants []*grant) []Offer {
	own := slices.Clone(offers)
	for _, o := range c.live {
		if o == j || !o.moving || o.saves() || slices.ContainsFunc(grants, func(g *grant) bool { return g.job == o }) {
			continue
		}
		for _, k := range o.kept {
			if i := slices.Index(c.order, k.taskManager); i >= 0 {
				own[i].Free = max(0, own[i].Free-(k.slots.Hi-k.slots.Lo))
			}
		}
	}
	return own
}

// reserveRestarting takes the least of the jobs that are being restarted from the offers, so that it is
// not given to others as more than their least.
func (c *Core) reserveRestarting(offers []Offer) {
	for _, j := range c.live {
		if j.info.State == wire.JobRestarting && !c.inLine(j) {
			if shares, short := Place(offers, c.request(j)); short == nil {
				reserve(offers, shares, 1)
			}
		}
	}
}

// grant is the slots that a job gets.
type grant struct {
	job     *job
	request Request
	shares  []Share
}

// extend adds free slots to a grant, up to the most that its job can use. It adds no slots of avoided
// task managers, as the job needs no more than its least.
func (g *grant) extend(offers []Offer) {
	reserve(offers, g.shares, -1)
	r := g.request
	r.Slots = min(r.Most, room(offers, r))
	if shares, short := Place(offers, r); short == nil {
		g.shares = shares
	}
	reserve(offers, g.shares, 1)
}

// reserve takes the slots of shares from the offers, or gives them back if sign is -1.
func reserve(offers []Offer, shares []Share, sign int) {
	for _, s := range shares {
		offers[s.Offer].Free -= sign * (s.Slots.Hi - s.Slots.Lo)
	}
}

// offers returns the offers of all task managers, in the order of c.order.
func (c *Core) offers() []Offer {
	offers := make([]Offer, len(c.order))
	for i, n := range c.order {
		offers[i] = c.offer(n)
	}
	return offers
}

// request returns the request for the slots that the job waits for.
func (c *Core) request(j *job) Request {
	r := Request{Platform: j.spec.Platform, Policy: c.config.Policy}
	r.Slots, r.Most = j.wants()
	r.setKept(j.kept)
	if j.spec.Resident {
		r.Executable = j.spec.Artifact
	}
	return r
}

// wants returns the smallest and the largest number of slots with which the job can go on.
func (j *job) wants() (least, most int) {
	switch {
	case j.info.State == wire.JobResolving || j.resume.due:
		return 1, 1
	case j.slotsFixed() || j.info.Allowed.Max == 0:
		return j.info.Slots, j.info.Slots
	case j.target > 0:
		return j.info.Allowed.Min, max(j.info.Allowed.Min, min(j.target, j.info.Allowed.Max))
	}
	return j.info.Allowed.Min, j.info.Allowed.Max
}

// restartsSoon is how long before its next attempt a job that is restarting has its place in the line. The
// processes of its last attempt wait as long for the next one, so that it does not lose them to jobs behind it.
const restartsSoon = time.Minute

// inLine reports whether the job waits for slots, or will do so soon when its attempt is over.
func (c *Core) inLine(j *job) bool {
	return j.queued || j.info.State == wire.JobRestarting && (j.moving || max(j.restartAt, j.fencedUntil)-c.clock.Counted() <= restartsSoon)
}
