package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"

	"github.com/alecthomas/kong"

	"github.com/superstep-ml/superstep/collective/algorithm"
	"github.com/superstep-ml/superstep/collective/program"
	"github.com/superstep-ml/superstep/collective/simulate"
)

// commandLine has the commands of the program.
type commandLine struct {
	Draw    drawCommand    `cmd:"" default:"withargs" help:"Draw curves and print crossovers; this is the default command."`
	Compare compareCommand `cmd:"" help:"Compare prices with measurements."`
	Choice  choiceCommand  `cmd:"" help:"Compare the algorithms that a group chose with the best measured algorithms."`
}

// drawCommand has the flags of the command draw.
type drawCommand struct {
	Network  []string `default:"10gbe,two-tier" help:"Networks: names of presets, or JSON files."`
	Out      string   `default:"docs/collectives" placeholder:"DIR" help:"Folder for the pictures; if it is empty, none are drawn."`
	At       int      `default:"64" help:"Number of ranks in the picture of time against size."`
	Short    int      `default:"32768" help:"Bytes of the short vector in the pictures of time against ranks."`
	Long     int      `default:"67108864" help:"Bytes of the long vector in the pictures of time against ranks."`
	MaxRanks int      `default:"4096" help:"Largest number of ranks in the pictures of time against ranks."`
	Ranks    []int    `default:"4,8,16,24,64,256,1024" help:"Numbers of ranks in the tables."`
	MaxBytes int      `default:"268435456" help:"Bytes of the longest vector in the picture of time against size and in the tables."`
}

// compareCommand has the flags of the command compare.
type compareCommand struct {
	Measured string `required:"" placeholder:"FILE" help:"File with measurements as lines of JSON."`
	Network  string `default:"loopback" help:"Network on which runs are priced, or from which the fit starts: a preset, or a JSON file."`
	Cores    int    `placeholder:"N" help:"Cores of a host, instead of the number in the network."`
	FitRanks []int  `placeholder:"N" help:"Fit the network to the runs with these numbers of ranks, too."`
	Check    bool   `help:"Exit with 1 if prices are too far from measurements; see the package documentation."`
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	var c commandLine
	k := kong.Parse(&c, kong.Name("curves"), kong.Description("Prices AllReduces on simulated networks."), kong.UsageOnError(),
		kong.BindTo(ctx, (*context.Context)(nil)), kong.BindTo(os.Stdout, (*io.Writer)(nil)))
	if err := k.Run(); err != nil {
		fmt.Fprintln(os.Stderr, "curves:", err)
		os.Exit(1)
	}
}

// Validate is called by kong.
func (c *drawCommand) Validate() error {
	if c.At < 2 || c.MaxRanks < 2 || c.Short < 1 || c.Long < 1 || c.MaxBytes < elem {
		return errors.New("want at least 2 ranks and 8 bytes")
	}
	for _, p := range c.Ranks {
		if p < 2 {
			return fmt.Errorf("%d ranks: want at least 2", p)
		}
	}
	return nil
}

// Run is called by kong.
func (c *drawCommand) Run(ctx context.Context, out io.Writer) error {
	for _, name := range c.Network {
		net, err := simulate.Named(name)
		if err != nil {
			return err
		}
		p := newPricer(ctx, net)
		if c.Out != "" {
			if err := c.draw(p); err != nil {
				return err
			}
		}
		if err := p.printCrossovers(out, c.Ranks, c.MaxBytes); err != nil {
			return err
		}
	}
	return nil
}

// elem is the size in bytes of the elements of all vectors: float64.
const elem = 8

// series is an algorithm with a number of ranks.
type series struct {
	algorithm string
	ranks     int
}

// priced is a point of a curve.
type priced struct {
	bytes   int
	seconds float64
}

// pricer prices AllReduces on a network. It stores the prices, so that each price is computed
// only once.
type pricer struct {
	ctx    context.Context
	net    *simulate.Network
	prices map[series][]priced
}

func newPricer(ctx context.Context, net *simulate.Network) *pricer {
	return &pricer{ctx: ctx, net: net, prices: map[series][]priced{}}
}

// price returns the simulated time of an algorithm in seconds. ok is false if the algorithm
// does not support the number of ranks.
func (p *pricer) price(a *algorithm.Algorithm, ranks, bytes int) (seconds float64, ok bool, err error) {
	pr := p.params(a, ranks)
	if a.Supports(pr) != nil {
		return 0, false, nil
	}
	c := series{a.Name, ranks}
	for _, k := range p.prices[c] {
		if k.bytes == bytes {
			return k.seconds, true, nil
		}
	}
	r, err := simulate.Price(p.ctx, a, pr, bytes, elem, p.net, simulate.Options{})
	if err != nil {
		return 0, false, err
	}
	p.prices[c] = append(p.prices[c], priced{bytes, r.Time})
	return r.Time, true, nil
}

// params returns the parameters of an algorithm. On a network with racks, dimensions follow the
// racks.
func (p *pricer) params(a *algorithm.Algorithm, ranks int) algorithm.Params {
	pr := algorithm.Params{P: ranks}
	rack := max(p.net.RanksPerHost, 1) * p.net.HostsPerRack
	if rack < 2 || ranks <= rack || ranks%rack != 0 {
		return pr
	}
	with := pr
	switch a.Name {
	case "torus", "blueconnect":
		with.Dims = []int{rack, ranks / rack}
	case "hierarchical":
		with.Dims = []int{rack}
	}
	if a.Supports(with) == nil {
		return with
	}
	return pr
}

// allReduces returns all algorithms for AllReduce.
func allReduces() []*algorithm.Algorithm { return algorithm.For(program.AllReduce) }

func canonical(a *algorithm.Algorithm, ranks int) bool {
	return a.Canonical != nil && a.Canonical(ranks)
}
