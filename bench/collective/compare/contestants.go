package main

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
)

// point is what is measured: one collective among so many ranks. Bytes are those
// of a rank's larger buffer; 0 of barriers.
type point struct {
	Collective string `json:"collective"`
	Ranks      int    `json:"ranks"`
	Bytes      int    `json:"bytes"`
}

// Ways in which ranks reach each other, compared apart.
const (
	overTCP  = "tcp"
	inMemory = "memory"
)

// contestant is a library set up in one way.
type contestant struct {
	Name      string `json:"name"`
	Transport string `json:"transport"`
	Ours      bool   `json:"ours"`
	Yardstick bool   `json:"yardstick"` // no collective: a bound, in no ratio

	// IdleCPU are the seconds of processor time of a rank that waits for a second;
	// −1 where not measured.
	IdleCPU float64 `json:"idle_cpu"`

	needs []string // programs that must be there
	// commands returns what to run for a request, one after the other; nothing where
	// it cannot serve the point.
	commands func(q request) [][]string
	env      []string

	gaveUp bool // it took too long once
}

// request is what a contestant is asked to measure.
type request struct {
	point
	seconds float64  // about how long a configuration is to take
	configs []string // configurations to run; nil for all
	endless bool     // rather go on until ended
}

// wants says whether a configuration is asked for.
func (q request) wants(config string) bool {
	return q.configs == nil || slices.Contains(q.configs, config)
}

// polls says whether a rank that waits keeps a core busy, as far as others let it.
func (k *contestant) polls() bool { return k.IdleCPU > 0.05 }

// allContestants are all, in the order of the table's columns.
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

// ourNames are what our command calls collectives, where that differs.
var ourNames = map[string]string{"reduce_scatter": "reduce-scatter", "alltoall": "all-to-all"}

// Configurations of ours.
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
			if q.endless {
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

// ourLine is how our command is asked for one size.
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
	if os.Geteuid() == 0 { // mpirun wants to hear that it is meant
		k.env = []string{"OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1"}
	}
	return k
}

// peerFlags are those that both peers' programs take. Like ours, they meet in a
// barrier of the library before each operation. That one takes too long is seen here, and
// not by the program.
func peerFlags(q request) []string {
	most := 100_000
	if q.endless {
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

// rawContestant is no collective: two processes that exchange as many bytes.
func rawContestant(c *compareCommand) *contestant {
	return &contestant{
		Name: "raw TCP", Transport: overTCP, Yardstick: true, needs: []string{c.Superstep},
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
