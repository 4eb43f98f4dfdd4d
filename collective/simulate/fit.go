package simulate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/superstep-ml/superstep/collective/algorithm"
	"github.com/superstep-ml/superstep/collective/program"
)

// Kind is the kind of a measurement.
type Kind uint8

// The kinds of samples.
const (
	PingPong   Kind = iota // half of the time of a message from rank 0 to rank 1 and back
	Stream                 // time per message of many messages from rank 0 to rank 1, sent without waiting for answers
	Fold                   // folding a buffer into another, within a rank
	Copy                   // copying a buffer, within a rank
	Collective             // running a collective with an algorithm
	numKinds
)

var kindNames = [numKinds]string{"ping-pong", "stream", "fold", "copy", "collective"}

// String returns "ping-pong", "stream", "fold", "copy" or "collective".
func (k Kind) String() string {
	if k >= numKinds {
		return fmt.Sprintf("kind(%d)", uint8(k))
	}
	return kindNames[k]
}

// Sample is a measurement.
type Sample struct {
	Kind    Kind
	Bytes   int     // length of the message, the buffer, or the whole data of a collective
	Seconds float64 // measured time

	Algorithm *algorithm.Algorithm // algorithm of a collective
	Params    algorithm.Params     // parameters of a collective
	Elem      int                  // bytes of an element of a collective; 0 stands for 8
}

// String returns, for example, "ping-pong of 8 bytes" or "allreduce ring among 4 of 1024
// bytes".
func (s *Sample) String() string {
	if s.Kind == Collective && s.Algorithm != nil {
		return fmt.Sprintf("%s %s among %d of %d bytes", s.Algorithm.Collective, s.Algorithm.Name, s.Params.P, s.Bytes)
	}
	return fmt.Sprintf("%s of %d bytes", s.Kind, s.Bytes)
}

// Fit returns a copy of base with costs for which the predicted times of the samples are as
// close as possible to the measured times. If ranks 0 and 1 of base are on one host, all ranks
// must be on that host. Otherwise each rank must be on its own host, and all hosts in one rack.
// Fit changes the latency and the bandwidth of that class of links, the overhead and the copy
// cost of messages (keeping the ratios of sender, receiver and wake-up), Gamma and Copy. It
// does not change costs of 0, an unlimited bandwidth, or costs that affect no sample. If there
// are samples of collectives, Fit may also double Cores, or halve it several times: fewer cores
// are available on a machine that other programs use too, or whose scheduler wakes a receiver
// on the core of its sender.
//
// A few sizes of each of ping-pongs, streams and folds are enough to determine all costs: short
// ping-pongs determine the sum of latency and overhead, long ping-pongs determine the cost of
// copies, and streams distinguish overhead from latency. Samples of collectives correct for
// interactions between ranks.
//
// The misfit is the sum of r + 1/r − 2 over the samples, where r is the ratio of the predicted
// to the measured time. So an error by a factor of two has the same weight in both directions
// and for all sizes. To minimise the misfit, Fit repeatedly multiplies one cost by a factor, or
// multiplies one cost and divides another cost by the factor. The factors get closer and closer
// to 1.
func Fit(ctx context.Context, base *Network, samples []Sample, opt Options) (*Network, error) {
	if len(samples) == 0 {
		return nil, errors.New("simulate: no samples to fit a network to")
	}
	for i := range samples {
		if s := samples[i].Seconds; !(s > 0) || math.IsInf(s, 1) {
			return nil, fmt.Errorf("simulate: %s took %v seconds", &samples[i], s)
		}
	}
	n := base.Clone()
	n.Jitter, n.Stragglers = 0, nil
	pr, err := newPredictor(n, samples, opt)
	if err != nil {
		return nil, err
	}
	best := &fitting{misfit: math.Inf(1)}
	for _, cores := range coresToTry(n, samples) {
		for _, copies := range [3]float64{0, 0.25, 4} {
			f := &fitting{ctx: ctx, net: n.Clone(), predictor: pr}
			f.net.Cores = cores
			f.scales = scalesOf(f.net)
			if copies > 0 && !f.begin(copies) {
				continue
			}
			if f.misfit, err = f.measure(); err != nil {
				return nil, err
			}
			if err := f.descend(4, 2, 1.5, 1.2, 1.1); err != nil {
				return nil, err
			}
			if f.misfit < best.misfit {
				best = f
			}
		}
	}
	if err := best.descend(1.05, 1.02, 1.01, 1.005); err != nil {
		return nil, err
	}
	best.net.Name = "fitted"
	return best.net, nil
}

// Predict returns the predicted times of the samples on network n. It ignores the field Seconds
// of the samples.
func Predict(ctx context.Context, n *Network, samples []Sample, opt Options) ([]float64, error) {
	p, err := newPredictor(n, samples, opt)
	if err != nil {
		return nil, err
	}
	return p.predict(ctx, n)
}

// fitting is the state of a minimisation.
type fitting struct {
	ctx       context.Context
	net       *Network
	predictor *predictor
	scales    []func(factor float64)
	misfit    float64
}

// scalesOf returns functions, one for each cost of a network. A function multiplies its cost by
// a factor.
func scalesOf(n *Network) []func(float64) {
	link := linkOf(n)
	return []func(float64){
		func(f float64) { link.Latency *= f },
		func(f float64) { n.SendOverhead *= f; n.RecvOverhead *= f; n.WakeUp *= f },
		func(f float64) { n.SendCopy *= f; n.RecvCopy *= f },
		func(f float64) { n.Gamma *= f },
		func(f float64) { n.Copy *= f },
		func(f float64) { link.Bandwidth /= f },
	}
}

// begin sets the bandwidth and the copy cost from the rate of the longest measured message. If
// copies is below 1, the bandwidth is that rate, and a copy takes the share copies of the time
// of the message. Otherwise copies have that rate, and the bandwidth is higher by the factor
// copies. The minimisation can find the bandwidth or the copy cost only if it begins where both
// have an effect on the times. begin returns false if no message was measured or the bandwidth
// is unlimited.
func (f *fitting) begin(copies float64) bool {
	longest := Sample{}
	for _, s := range f.predictor.samples {
		if (s.Kind == Stream || s.Kind == PingPong) && s.Bytes > longest.Bytes {
			longest = s
		}
	}
	link := linkOf(f.net)
	if longest.Bytes == 0 || link.Bandwidth == 0 {
		return false
	}
	perByte := longest.Seconds / float64(longest.Bytes)
	link.Bandwidth = max(copies, 1) / perByte
	if most := max(f.net.SendCopy, f.net.RecvCopy); most > 0 {
		by := min(copies, 1) * perByte / most
		f.net.SendCopy *= by
		f.net.RecvCopy *= by
	}
	return true
}

// coresToTry returns the numbers of cores to try: the number of the network and, if there are
// samples of collectives, twice this number, half of it, a quarter of it, and so on down to
// one.
func coresToTry(n *Network, samples []Sample) []int {
	cores, ranks := []int{n.Cores}, 0
	for _, s := range samples {
		if s.Kind == Collective {
			ranks = max(ranks, s.Params.P)
		}
	}
	if ranks == 0 {
		return cores
	}
	for c := 2 * n.Cores; c >= 1; c /= 2 {
		if c != n.Cores && c < 2*ranks { // with more cores, no rank ever waits for a core
			cores = append(cores, c)
		}
	}
	return cores
}

// linkOf returns the class of the link between ranks 0 and 1 of a network that has one host or
// one rack.
func linkOf(n *Network) *Link {
	if n.hostOf(0) == n.hostOf(1) {
		return &n.Host
	}
	return &n.Rack
}

// descend changes costs by the first factor in steps until no change reduces the misfit any
// more, then by the next factor, and so on.
func (f *fitting) descend(steps ...float64) error {
	const rounds = 16 // after this number of rounds, smaller factors make better progress
	for _, step := range steps {
		for range rounds {
			moved, err := f.tryAll(step, false)
			if !moved && err == nil {
				moved, err = f.tryAll(step, true)
			}
			if err != nil {
				return err
			}
			if !moved {
				break
			}
		}
	}
	return nil
}

// tryAll tries to multiply each cost by step and by 1/step. If pairs is set, it also divides
// another cost by the same factor, for every pair of costs. It keeps changes that reduce the
// misfit.
func (f *fitting) tryAll(step float64, pairs bool) (moved bool, err error) {
	for i := range f.scales {
		for j := range f.scales {
			if pairs == (i == j) {
				continue
			}
			for _, by := range [2]float64{step, 1 / step} {
				better, err := f.try(i, j, by)
				if err != nil {
					return false, err
				}
				moved = moved || better
			}
		}
	}
	return moved, nil
}

// try multiplies cost i by factor and, if j differs from i, divides cost j by the same
// factor. It keeps the change and returns true if the misfit is smaller.
func (f *fitting) try(i, j int, factor float64) (better bool, err error) {
	before := *f.net
	f.scales[i](factor)
	if j != i {
		f.scales[j](1 / factor)
	}
	misfit, err := f.measure()
	if err != nil {
		return false, err
	}
	if misfit < f.misfit*(1-1e-6) { // without the margin, costs that have no effect would change because of rounding errors
		f.misfit = misfit
		return true, nil
	}
	*f.net = before
	return false, nil
}

func (f *fitting) measure() (float64, error) {
	prices, err := f.predictor.predict(f.ctx, f.net)
	sum := 0.0
	for i, p := range prices {
		ratio := p / f.predictor.samples[i].Seconds
		sum += ratio + 1/ratio - 2
	}
	return sum, err
}

// predictor has the compiled programs of samples.
type predictor struct {
	samples []Sample
	plans   [][2]*plan // plans of each sample; a stream has two plans, with different numbers of messages
}

// streamed is the difference between the numbers of messages of the two programs of a stream.
const streamed = 16

// newPredictor compiles the programs of samples for networks that differ from n only in costs.
func newPredictor(n *Network, samples []Sample, opt Options) (*predictor, error) {
	p := &predictor{samples: samples, plans: make([][2]*plan, len(samples))}
	for i := range samples {
		s := &samples[i]
		if s.Bytes < 0 || s.Kind >= numKinds || s.Kind == Collective && s.Algorithm == nil {
			return nil, fmt.Errorf("simulate: sample %d, %s: no such measurement", i, s)
		}
		var works [2]*Work
		switch s.Kind {
		case PingPong:
			works[0] = oneWay(1, s.Bytes)
		case Stream:
			works = [2]*Work{oneWay(streamed, s.Bytes), oneWay(2*streamed, s.Bytes)}
		case Collective:
			w, err := workOf(s.Algorithm, s.Params, s.Bytes, cmp.Or(s.Elem, 8))
			if err != nil {
				return nil, err
			}
			works[0] = w
		}
		for k, w := range works {
			if w == nil {
				continue
			}
			if err := check(w, n); err != nil {
				return nil, err
			}
			pl, err := newPlan(w, n, opt)
			if err != nil {
				return nil, err
			}
			p.plans[i][k] = pl
		}
	}
	return p, nil
}

// oneWay returns the work of sending the given number of messages, each of the given number of
// bytes, from rank 0 to rank 1.
func oneWay(messages, bytes int) *Work {
	return &Work{P: 2, Elements: bytes, Elem: 1, Program: func(rank int) *program.Program {
		p := &program.Program{Collective: program.Broadcast, Algorithm: "messages", P: 2, Rank: rank, Chunks: 1}
		lane := program.Lane{SendPeer: 1, RecvPeer: program.NoPeer}
		in := program.Instruction{Op: program.DoSend, Src: []program.Ref{program.Chunk(program.In, 0, 0)}}
		if p.In.Hi = 1; rank == 1 {
			p.In.Hi, p.Out.Hi = 0, 1
			lane.SendPeer, lane.RecvPeer = program.NoPeer, 0
			in = program.Instruction{Op: program.DoRecv, Dst: program.Chunk(program.Out, 0, 0)}
		}
		for range messages {
			lane.Steps = append(lane.Steps, in)
		}
		p.Lanes = []program.Lane{lane}
		return p
	}}
}

// predict returns the predicted times of all samples.
func (p *predictor) predict(ctx context.Context, n *Network) ([]float64, error) {
	prices := make([]float64, len(p.samples))
	for i := range p.samples {
		switch p.samples[i].Kind {
		case Fold:
			prices[i] = n.Gamma * float64(p.samples[i].Bytes)
			continue
		case Copy:
			prices[i] = n.Copy * float64(p.samples[i].Bytes)
			continue
		}
		r, err := p.plans[i][0].price(ctx, n)
		if err != nil {
			return nil, err
		}
		prices[i] = r.Time
		if long := p.plans[i][1]; long != nil {
			r, err := long.price(ctx, n)
			if err != nil {
				return nil, err
			}
			prices[i] = (r.Time - prices[i]) / streamed
		}
	}
	return prices, nil
}
