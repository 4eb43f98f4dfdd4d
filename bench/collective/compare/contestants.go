package main

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
)

// point is a point of measurement: a collective, a number of ranks and a size. Bytes is the
// size of the larger buffer of a rank; for barriers it is 0.
type point struct {
	Collective string `json:"collective"`
	Ranks      int    `json:"ranks"`
	Bytes      int    `json:"bytes"`
}

// Transports between ranks. A contestant is compared only with contestants of the same
// transport.
const (
	overTCP  = "tcp"
	inMemory = "memory"
)

// contestant is a library with one set of options.
type contestant struct {
	Name      string `json:"name"`
	Transport string `json:"transport"`
	Ours      bool   `json:"ours"`
	Baseline  bool   `json:"yardstick"` // the contestant runs no collective: it measures a lower bound, and is not used in ratios

	// IdleCPU is the processor time in seconds that a rank uses while it waits for one second;
	// −1 if it was not measured.
	IdleCPU float64 `json:"idle_cpu"`

	needs []string // programs that must exist
	// commands returns the commands for a request, which are run one after the other. If the
	// contestant does not support the point, it returns no commands.
	commands func(q request) [][]string
	env      []string

	timedOut bool // whether a run exceeded the time limit
}

// request describes what a contestant is to measure.
type request struct {
	point
	seconds    float64  // approximate time for a configuration
	configs    []string // names of the configurations to run; nil for all
	untilEnded bool     // run until the process is killed, whatever seconds is
}

// wants reports whether a request includes a configuration.
func (q request) wants(config string) bool {
	return q.configs == nil || slices.Contains(q.configs, config)
}

// polls reports whether a waiting rank keeps a core busy when no other process needs the core.
func (k *contestant) polls() bool { return k.IdleCPU > 0.05 }

// allContestants returns all contestants, in the order of the table's columns.
func allContestants(c *compareCommand) []*contestant {
	all := []*contestant{superstepContestant(c, "superstep", overTCP)}
	for _, name := range c.Algorithm {
		all = append(all, superstepContestant(c, "superstep "+name, overTCP, "--algorithm", name))
	}
	for _, mode := range []string{"async", "sync", "busy"} {
		all = append(all, glooContestant(c, mode))
	}
	return append(all,
		mpiContestant(c, "Open MPI", overTCP, "tcp,self"),
		rawContestant(c),
		superstepContestant(c, "superstep in one process", inMemory, "--in-process"),
		mpiContestant(c, "Open MPI in shared memory", inMemory, "vader,self"),
	)
}

// ourNames maps collectives to their names in the command superstep, if these names differ.
var ourNames = map[string]string{"reduce_scatter": "reduce-scatter", "alltoall": "all-to-all"}

// Configurations of Superstep.
const (
	outOfPlace = "out-of-place"
	inPlace    = "in-place"
)

func superstepContestant(c *compareCommand, name, transport string, args ...string) *contestant {
	return &contestant{
		Name: name, Transport: transport, Ours: true, needs: []string{c.Superstep},
		commands: func(q request) [][]string {
			collective := q.Collective
			if other, ok := ourNames[collective]; ok {
				collective = other
			}
			line := append(ourLine(c, q, collective), append([]string{"--type", "float64", "--op", "sum"}, args...)...)
			if q.untilEnded {
				line = append(line, "--iterations", "5000000")
			}
			var lines [][]string
			if q.wants(outOfPlace) {
				lines = append(lines, line)
			}
			if q.Collective == "allreduce" && q.wants(inPlace) {
				lines = append(lines, append(slices.Clone(line), "--in-place"))
			}
			return lines
		},
	}
}

// ourLine returns the command line of superstep bench collective for the point of q.
func ourLine(c *compareCommand, q request, collective string) []string {
	size := strconv.Itoa(q.Bytes)
	return []string{
		c.Superstep, "bench", "collective", "--json", "--no-raw", "--collective", collective,
		"--ranks", strconv.Itoa(q.Ranks), "--min-bytes", size, "--max-bytes", size,
		"--seconds", strconv.FormatFloat(q.seconds, 'g', -1, 64),
	}
}

func glooContestant(c *compareCommand, mode string) *contestant {
	program := filepath.Join(c.Peers, "gloo_bench")
	return &contestant{
		Name: "Gloo " + mode, Transport: overTCP, needs: []string{program},
		commands: func(q request) [][]string {
			return [][]string{append([]string{program, "--ranks", strconv.Itoa(q.Ranks), "--mode", mode}, peerFlags(q)...)}
		},
	}
}

func mpiContestant(c *compareCommand, name, transport, btl string) *contestant {
	program := filepath.Join(c.Peers, "mpi_bench")
	k := &contestant{
		Name: name, Transport: transport, needs: []string{c.Mpirun, program},
		commands: func(q request) [][]string {
			line := []string{c.Mpirun, "-n", strconv.Itoa(q.Ranks), "--oversubscribe", "--mca", "btl", btl}
			if q.Ranks > runtime.NumCPU() {
				line = append(line, "--mca", "mpi_yield_when_idle", "1")
			}
			return [][]string{append(append(line, program), peerFlags(q)...)}
		},
	}
	if os.Geteuid() == 0 { // mpirun refuses to run as root without this flag
		k.env = []string{"OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1"}
	}
	return k
}

// peerFlags returns the flags for a request that gloo_bench and mpi_bench have in common. Both
// programs run a barrier of their library before each operation, as Superstep does. The time
// limit of these programs is turned off, because the comparison enforces a limit itself.
func peerFlags(q request) []string {
	most := 100_000
	if q.untilEnded {
		most = 5_000_000
	}
	flags := []string{
		"--collective", q.Collective, "--seconds", strconv.FormatFloat(q.seconds, 'g', -1, 64),
		"--max-iterations", strconv.Itoa(most), "--limit", "0",
	}
	if q.Bytes > 0 {
		flags = append(flags, "--bytes", strconv.Itoa(q.Bytes))
	}
	if len(q.configs) > 0 {
		flags = append(flags, "--config", strings.Join(q.configs, ","))
	}
	return flags
}

// rawContestant returns the contestant that runs no collective. Two processes send each other
// the number of bytes of the point.
func rawContestant(c *compareCommand) *contestant {
	return &contestant{
		Name: "raw TCP", Transport: overTCP, Baseline: true, needs: []string{c.Superstep},
		commands: func(q request) [][]string {
			if q.Collective != "allreduce" || q.Ranks != 2 {
				return nil
			}
			line := ourLine(c, q, "exchange")
			if len(q.configs) > 0 {
				line = append(line, "--algorithm", strings.Join(q.configs, ","))
			}
			return [][]string{line}
		},
	}
}
