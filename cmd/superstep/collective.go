package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/superstep-ml/superstep/cmd/internal/commands"
	"github.com/superstep-ml/superstep/collective"
	"github.com/superstep-ml/superstep/collective/algorithm"
	"github.com/superstep-ml/superstep/collective/program"
	"github.com/superstep-ml/superstep/collective/simulate"
	"github.com/superstep-ml/superstep/collective/tune"
)

// collectiveCommand is the command "superstep bench collective".
type collectiveCommand struct {
	Collective string   `short:"c" default:"allreduce" help:"What to run: allreduce, broadcast, reduce, gather, allgather, scatter, reduce-scatter, all-to-all, barrier, scan, exscan; or all; or what plain TCP does between two ranks: exchange, both ways at once, or ping-pong."`
	Algorithm  []string `short:"a" sep:"," help:"Algorithms by name, with dimensions if they take any (torus:4x8); all for each in turn; chosen (the default) for the group's choice. For plain TCP, how a rank waits: netpoll, blocking, polling; by default each."`
	Ranks      int      `short:"p" default:"2" help:"Number of ranks."`
	Root       int      `help:"Root of rooted collectives."`

	MinBytes size   `short:"b" default:"8" help:"Smallest size: bytes of a rank's larger buffer; K, M and G are powers of 1024."`
	MaxBytes size   `short:"e" default:"64M" help:"Largest size."`
	Factor   int    `short:"f" default:"8" help:"Factor from one size to the next."`
	Type     string `default:"float64" enum:"float64,float32,int64,int32,uint8" help:"Element type: ${enum}."`
	Op       string `default:"sum" enum:"sum,prod,min,max" help:"Operator: ${enum}."`
	InPlace  bool   `help:"Use one buffer for input and output."`

	Warmup     int           `short:"w" default:"5" help:"Runs before those that count."`
	Iterations int           `short:"n" help:"Runs that count; 0 for as many as fit into --seconds."`
	Seconds    float64       `default:"0.5" help:"Time for the runs of one line in one round, where --iterations is 0."`
	Rounds     int           `default:"1" help:"How often the lines of a size are measured, in turn. A line summarises its runs in all rounds, so that changes over time affect all lines alike."`
	JSON       bool          `name:"json" help:"One JSON object a line instead of a table; --explain then writes to the standard error."`
	NoRaw      bool          `help:"Leave out the raw TCP rate between ranks 0 and 1."`
	Timeout    time.Duration `default:"30s" help:"How long to wait for all processes to connect."`

	InProcess bool     `help:"Ranks are goroutines of this process, which share memory and need no choice of algorithm."`
	Addresses []string `sep:"," help:"host:port of each rank, for processes started by others, one with each --rank and all with the same other flags. Default: this command starts processes of its own on loopback."`
	Rank      int      `default:"-1" help:"With --addresses: which rank this process is."`

	Calibrate bool   `help:"Measure the endpoints first, and choose algorithms by that."`
	Rules     string `type:"existingfile" help:"File of rules about which algorithm to choose (JSON)."`
	AnyTree   bool   `help:"Choose also among algorithms that fold in another order: sums may then differ in their last bits."`
	Explain   bool   `help:"Show why each algorithm was chosen. One choice serves all sizes above a power of two up to the next, by the times predicted for a size in the middle."`

	Simulate bool   `help:"Print the times predicted for --network instead of running anything."`
	Network  string `help:"With --simulate: 10gbe (the default), two-tier, loopback, or a JSON file."`
}

// Run runs the benchmark.
func (c *collectiveCommand) Run(ctx context.Context, s *streams) error {
	work, err := c.plan()
	if err != nil {
		return commands.Usage(err)
	}
	switch {
	case c.Simulate:
		return c.simulate(ctx, s, work)
	case c.InProcess:
		return c.runInProcess(ctx, s, work)
	case len(c.Addresses) > 0:
		return c.runRank(ctx, s, work, c.Rank, collective.TCPConfig{Addresses: c.Addresses}, func() {})
	default:
		return c.runProcesses(ctx, s, work)
	}
}

// job is a collective or an operation over plain TCP, with the variants to measure.
type job struct {
	collective program.Collective
	raw        string   // exchange or pingPong; "" for a collective
	algorithms []string // names of algorithms, where "" is the group's choice; for plain TCP, the ways to wait
}

// String returns the name of the collective or operation.
func (j job) String() string { return cmp.Or(j.raw, j.collective.String()) }

// plan checks the command line and returns the jobs.
func (c *collectiveCommand) plan() ([]job, error) {
	if len(c.Addresses) > 0 {
		c.Ranks = len(c.Addresses)
	}
	switch {
	case c.Ranks < 1:
		return nil, fmt.Errorf("--ranks is %d: want at least 1", c.Ranks)
	case c.Root < 0 || c.Root >= c.Ranks:
		return nil, fmt.Errorf("--root is %d: want 0 to %d", c.Root, c.Ranks-1)
	case c.MinBytes < 0 || c.MaxBytes < c.MinBytes:
		return nil, fmt.Errorf("--min-bytes is %d and --max-bytes %d: want 0 or more, the first not above the second", c.MinBytes, c.MaxBytes)
	case !c.Simulate && int64(c.MaxBytes) > maxBytes:
		return nil, fmt.Errorf("--max-bytes is %s: only --simulate takes more than 256G", sizeText(int(c.MaxBytes)))
	case c.Factor < 2:
		return nil, fmt.Errorf("--factor is %d: want at least 2", c.Factor)
	case c.Warmup < 0 || c.Iterations < 0 || !(c.Seconds >= 0 && c.Seconds <= maxSeconds):
		return nil, fmt.Errorf("want --warmup and --iterations of 0 or more, and --seconds from 0 to %d", maxSeconds)
	case c.Rounds < 1 || c.Rounds > maxRounds:
		return nil, fmt.Errorf("--rounds is %d: want 1 to %d", c.Rounds, maxRounds)
	case len(c.Addresses) > 0 && (c.Rank < 0 || c.Rank >= len(c.Addresses)):
		return nil, fmt.Errorf("--rank is %d: with --addresses of %d ranks it says which of them this process is", c.Rank, len(c.Addresses))
	case repeated(c.Addresses) != "":
		return nil, fmt.Errorf("--addresses has %s twice: each rank is a process of its own", repeated(c.Addresses))
	}
	if err := c.checkFlags(); err != nil {
		return nil, err
	}
	colls := []program.Collective{}
	if c.raw() {
		j, err := c.rawJob()
		return []job{j}, err
	}
	if c.Collective == "all" {
		for k := range program.NumCollectives {
			colls = append(colls, k)
		}
	} else {
		k, err := program.ParseCollective(c.Collective)
		if err != nil {
			return nil, err
		}
		colls = append(colls, k)
	}
	var work []job
	for _, k := range colls {
		j, err := c.algorithmsFor(k)
		if err != nil {
			return nil, err
		}
		work = append(work, j)
	}
	return work, nil
}

// maxBytes is the largest size of a buffer, in bytes.
const maxBytes = 256 << 30

// maxSeconds is the largest value of --seconds. It bounds the number of runs computed from it.
const maxSeconds = 86400

// maxRounds is the largest number of rounds. It bounds the memory for the times of all runs.
const maxRounds = 1000

// checkFlags returns an error if two given flags exclude each other, or if a given flag has an
// effect only together with another flag that is not given.
func (c *collectiveCommand) checkFlags() error {
	given := map[string]bool{
		"--in-process": c.InProcess, "--addresses": len(c.Addresses) > 0, "--rank": c.Rank >= 0,
		"--simulate": c.Simulate, "--network": c.Network != "", "--calibrate": c.Calibrate,
		"--rules": c.Rules != "", "--any-tree": c.AnyTree, "--explain": c.Explain, "--in-place": c.InPlace,
		"--algorithm": len(c.Algorithm) > 0 && !c.has(chosen) && !c.raw(), "--collective " + c.Collective: c.raw(), "--algorithm chosen": c.has(chosen), "--rounds": c.Rounds > 1,
	}
	for _, x := range []struct {
		flag  string
		needs string
		not   []string
	}{
		{flag: "--rank", needs: "--addresses"},
		{flag: "--network", needs: "--simulate"},
		{flag: "--in-process", not: []string{"--addresses", "--calibrate", "--rules", "--any-tree", "--explain"}},
		{flag: "--simulate", not: []string{"--in-process", "--addresses", "--calibrate", "--rules", "--any-tree", "--explain", "--in-place", "--rounds", "--algorithm chosen"}},
		{flag: "--collective " + c.Collective, not: []string{"--in-process", "--simulate", "--calibrate", "--rules", "--any-tree", "--explain", "--in-place", "--algorithm chosen"}},
		{flag: "--algorithm", not: []string{"--calibrate", "--rules", "--any-tree", "--explain"}},
	} {
		if !given[x.flag] {
			continue
		}
		if x.needs != "" && !given[x.needs] {
			return fmt.Errorf("%s applies only with %s", x.flag, x.needs)
		}
		for _, other := range x.not {
			if given[other] {
				return fmt.Errorf("%s and %s exclude each other", x.flag, other)
			}
		}
	}
	return nil
}

// raw reports whether --collective names an operation over plain TCP.
func (c *collectiveCommand) raw() bool { return c.Collective == exchange || c.Collective == pingPong }

// rawJob returns the operation over plain TCP.
func (c *collectiveCommand) rawJob() (job, error) {
	j := job{raw: c.Collective, algorithms: c.Algorithm}
	ways := []string{netpoll, blocking, polling}
	if len(j.algorithms) == 0 || c.has(every) {
		j.algorithms = ways
	}
	for _, way := range j.algorithms {
		if !slices.Contains(ways, way) {
			return j, fmt.Errorf("plain TCP does not wait by %q: want %s", way, strings.Join(ways, ", "))
		}
	}
	if c.Ranks != 2 || c.MinBytes < 1 {
		return j, fmt.Errorf("%s is between 2 ranks, of 1 byte or more: --ranks is %d, --min-bytes %d", c.Collective, c.Ranks, c.MinBytes)
	}
	return j, nil
}

// repeated returns an address that is in addresses twice, or "" if there is none.
func repeated(addresses []string) string {
	seen := map[string]bool{}
	for _, a := range addresses {
		if seen[a] {
			return a
		}
		seen[a] = true
	}
	return ""
}

// These are the values of --algorithm for the group's choice and for all algorithms.
const (
	chosen = "chosen"
	every  = "all"
)

// has reports whether word is a value of --algorithm.
func (c *collectiveCommand) has(word string) bool { return slices.Contains(c.Algorithm, word) }

// algorithmsFor returns the job for collective k with the algorithms of --algorithm, without
// duplicates.
func (c *collectiveCommand) algorithmsFor(k program.Collective) (job, error) {
	names := c.Algorithm
	if len(names) == 0 {
		if names = []string{chosen}; c.Simulate {
			names = []string{every}
		}
	}
	j := job{collective: k}
	for _, name := range names {
		ways := []string{name}
		switch name {
		case chosen:
			ways[0] = ""
		case every:
			ways = c.allAlgorithms(k)
		default:
			if _, _, err := c.find(k, name); err != nil {
				return j, err
			}
		}
		for _, by := range ways {
			if !slices.Contains(j.algorithms, by) {
				j.algorithms = append(j.algorithms, by)
			}
		}
	}
	return j, nil
}

// find returns the algorithm for collective k with the name by, which may have dimensions, and
// its parameters. It returns an error if there is no such algorithm or if the algorithm does
// not support the parameters.
func (c *collectiveCommand) find(k program.Collective, by string) (*algorithm.Algorithm, algorithm.Params, error) {
	name, dims, err := algorithm.ParseName(by)
	pr := algorithm.Params{P: c.Ranks, Root: c.Root, Dims: dims}
	if err != nil {
		return nil, pr, err
	}
	a, err := algorithm.Find(k, name)
	if err == nil {
		err = a.Supports(pr)
	}
	return a, pr, err
}

// allAlgorithms returns the algorithms for collective k that support the number of ranks.
func (c *collectiveCommand) allAlgorithms(k program.Collective) []string {
	var names []string
	for _, a := range algorithm.For(k) {
		if a.Supports(algorithm.Params{P: c.Ranks, Root: c.Root}) == nil {
			names = append(names, a.Name)
		}
	}
	return names
}

// sizes returns the sizes to measure, in bytes. A barrier has only the size 0.
func (c *collectiveCommand) sizes(j job) []int {
	if j.raw == "" && j.collective == program.Barrier {
		return []int{0}
	}
	var sizes []int
	for n := int(c.MinBytes); ; {
		sizes = append(sizes, n)
		next := max(n, 1) * c.Factor
		if next > int(c.MaxBytes) || next/c.Factor != max(n, 1) {
			return sizes
		}
		n = next
	}
}

// tuner returns the tuner with which rank 0 chooses algorithms.
func (c *collectiveCommand) tuner() (*tune.Tuner, error) {
	t := tune.Default()
	t.AnyTree = c.AnyTree
	if c.Rules == "" {
		return t, nil
	}
	f, err := os.Open(c.Rules)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	t.Rules, err = tune.ReadRules(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", c.Rules, err)
	}
	return t, nil
}

// network returns the network that --network names.
func (c *collectiveCommand) network() (*simulate.Network, error) {
	return simulate.Named(cmp.Or(c.Network, "10gbe"))
}
