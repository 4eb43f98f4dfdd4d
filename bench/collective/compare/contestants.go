package main

import (
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
)

// point is what is measured: one collective among so many ranks. Bytes are those
// of a rank's larger buffer; 0 of barriers.
type point struct {
	Collective string `json:"collective"`
	Ranks      int    `json:"ranks"`
	Bytes      int64  `json:"bytes"`
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
	// command returns what to run for a point and about so many seconds, with the
	// configurations asked for or all, or nil where it cannot serve the point.
	command func(p point, seconds float64, configs []string) []string
	env     []string
}

// polls says whether a rank that waits keeps a core busy, as far as others let it.
func (k *contestant) polls() bool { return k.IdleCPU > 0.1 }

// allContestants are all, in the order of the table's columns.
func allContestants(c *compareCommand, self string) []*contestant {
	all := []*contestant{superstepContestant(c, "superstep", overTCP)}
	for _, name := range c.Algorithm {
		all = append(all, superstepContestant(c, "superstep "+name, overTCP, "--algorithm", name))
	}
	for _, mode := range []string{"async", "sync", "busy"} {
		all = append(all, glooContestant(c, mode))
	}
	return append(all,
		mpiContestant(c, "Open MPI", overTCP, "tcp,self"),
		rawContestant(self),
		superstepContestant(c, "superstep in one process", inMemory, "--in-process"),
		mpiContestant(c, "Open MPI in shared memory", inMemory, "vader,self"),
	)
}

func superstepContestant(c *compareCommand, name, transport string, args ...string) *contestant {
	return &contestant{
		Name: name, Transport: transport, Ours: true, needs: []string{c.Superstep},
		command: func(p point, seconds float64, _ []string) []string {
			size := strconv.FormatInt(p.Bytes, 10)
			return append([]string{
				c.Superstep, "bench", "collective", "--json", "--collective", p.Collective,
				"--ranks", strconv.Itoa(p.Ranks), "--min-bytes", size, "--max-bytes", size,
				"--type", "float64", "--op", "sum", "--warmup", "5",
				"--iterations", strconv.Itoa(iterations(p, seconds)),
			}, args...)
		},
	}
}

// iterations guesses how many operations take so long: about 30 µs a rank and a
// byte a nanosecond and rank.
func iterations(p point, seconds float64) int {
	each := float64(p.Ranks) * (30e-6 + 1e-9*float64(p.Bytes))
	return int(max(5, seconds/each))
}

func glooContestant(c *compareCommand, mode string) *contestant {
	program := filepath.Join(c.Peers, "gloo_bench")
	return &contestant{
		Name: "Gloo " + mode, Transport: overTCP, needs: []string{program},
		command: func(p point, seconds float64, configs []string) []string {
			return append([]string{program, "--ranks", strconv.Itoa(p.Ranks), "--mode", mode}, peerFlags(p, seconds, configs)...)
		},
	}
}

func mpiContestant(c *compareCommand, name, transport, btl string) *contestant {
	program := filepath.Join(c.Peers, "mpi_bench")
	k := &contestant{
		Name: name, Transport: transport, needs: []string{c.Mpirun, program},
		command: func(p point, seconds float64, configs []string) []string {
			line := []string{c.Mpirun, "-n", strconv.Itoa(p.Ranks), "--oversubscribe", "--mca", "btl", btl}
			if p.Ranks > runtime.NumCPU() {
				line = append(line, "--mca", "mpi_yield_when_idle", "1")
			}
			return append(append(line, program), peerFlags(p, seconds, configs)...)
		},
	}
	if os.Geteuid() == 0 { // mpirun wants to hear that it is meant
		k.env = []string{"OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1"}
	}
	return k
}

// peerFlags are those that both peers' programs take.
func peerFlags(p point, seconds float64, configs []string) []string {
	flags := []string{
		"--collective", p.Collective, "--seconds", strconv.FormatFloat(seconds, 'g', -1, 64),
		"--max-iterations", strconv.Itoa(max(20000, int(1e5*seconds))),
	}
	if p.Bytes > 0 {
		flags = append(flags, "--bytes", strconv.FormatInt(p.Bytes, 10))
	}
	if len(configs) > 0 {
		flags = append(flags, "--config", strings.Join(configs, ","))
	}
	return flags
}

// rawContestant is no collective: two processes that exchange as many bytes.
func rawContestant(self string) *contestant {
	return &contestant{
		Name: "raw TCP", Transport: overTCP, Yardstick: true,
		command: func(p point, seconds float64, configs []string) []string {
			if p.Collective != "allreduce" || p.Ranks != 2 {
				return nil
			}
			line := []string{self, "raw", "--pattern", "exchange", "--seconds", strconv.FormatFloat(seconds, 'g', -1, 64), "--bytes", strconv.FormatInt(p.Bytes, 10)}
			if len(configs) > 0 {
				line = append(line, "--waiting", strings.Join(configs, ","))
			}
			return line
		},
	}
}
