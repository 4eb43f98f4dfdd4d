package membership

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/superstep-ml/superstep/internal/peerlink"
)

// Config identifies a process and determines how the process finds the others. All processes of
// a group must have the same Group, Attempt, Processes and Size.
type Config struct {
	Process   int   // number of this process, from 0
	Processes int   // number of processes in the group
	Ranks     []int // ranks that this process hosts, in any order; at least one
	Size      int   // number of ranks in the group

	// Port accepts and makes the connections of this process. It is required if there are
	// several processes. The caller must close it after it has closed the membership.
	Port *peerlink.Port

	// Coordinator is the address, host:port, of the port of process 0. If the address is not
	// known in advance, process 0 writes it to Store. If there are several processes, exactly
	// one of Coordinator and Store must be set.
	Coordinator string
	Store       Store

	// DataAddress is the address, host:port, at which other processes connect to this process;
	// "" means the address of Port. An unspecified host (0.0.0.0, ::) is replaced by the local
	// host of this process's connection to the coordinator.
	DataAddress string

	Group   string // name of the group, unique among the groups at a port or store
	Attempt uint32 // number of the attempt; processes of earlier attempts are refused

	// Detection is the time after which a silent process is declared dead; 0 means 4 s. The
	// value of process 0 applies to all processes.
	Detection time.Duration

	// StallTimeout is the longest time for which all ranks may be in operations while none of
	// them sends or receives a byte. The value of process 0 applies. 0 means 4 s, and a
	// negative value means no limit.
	StallTimeout time.Duration

	// JoinTimeout bounds the time until all processes have joined; 0 means 30 s.
	JoinTimeout time.Duration

	// State returns the states of the ranks of this process. It is called about every 20 ms,
	// when a process is lost, and by Fail and Leave. Several goroutines may call it
	// concurrently. It must not wait. If State is nil, disagreements and lack of progress of
	// the ranks of this process are not detected. In each state, Seq must be the number of the
	// operation Op. An operation in which only some ranks take part has different numbers on
	// different ranks, so its hash must be 0.
	State func() []State

	Logger hclog.Logger // may be nil
}

// Defaults and limits of Config.
const (
	defaultDetection = 4 * time.Second
	defaultStall     = 4 * time.Second
	defaultJoin      = 30 * time.Second
	minDetection     = 50 * time.Millisecond
)

// completed returns the config with defaults for all fields that are not set, or an error if
// the config is invalid.
func (c Config) completed() (Config, error) {
	c.Ranks = slices.Sorted(slices.Values(c.Ranks))
	c.Detection = cmp.Or(c.Detection, defaultDetection)
	c.StallTimeout = max(0, cmp.Or(c.StallTimeout, defaultStall))
	c.JoinTimeout = cmp.Or(c.JoinTimeout, defaultJoin)
	if c.Logger == nil {
		c.Logger = hclog.NewNullLogger()
	}
	if c.DataAddress == "" && c.Port != nil {
		c.DataAddress = c.Port.Address()
	}
	return c, c.check()
}

// check returns an error if the config is invalid.
func (c *Config) check() error {
	switch {
	case c.Processes < 1 || c.Processes > maxProcs:
		return fmt.Errorf("a group has 1 to %d processes, not %d", maxProcs, c.Processes)
	case c.Process < 0 || c.Process >= c.Processes:
		return fmt.Errorf("there is no process %d among %d processes", c.Process, c.Processes)
	case c.Size < 1 || c.Size > maxRanks:
		return fmt.Errorf("a group has 1 to %d ranks, not %d", maxRanks, c.Size)
	case len(c.Ranks) == 0:
		return fmt.Errorf("process %d hosts no rank", c.Process)
	case len(c.Group) > maxGroup:
		return fmt.Errorf("the name of the group has %d bytes, more than %d", len(c.Group), maxGroup)
	case len(c.DataAddress) > maxHost:
		return fmt.Errorf("the data address has %d bytes, more than %d", len(c.DataAddress), maxHost)
	case c.Processes > 1 && c.Port == nil:
		return errors.New("a group of several processes needs a port")
	case c.Processes > 1 && (c.Coordinator == "") == (c.Store == nil):
		return errors.New("a group of several processes needs a coordinator's address or a store, and not both")
	case c.Detection < minDetection:
		return fmt.Errorf("a detection time of %v is less than %v", c.Detection, minDetection)
	case c.JoinTimeout < 0:
		return fmt.Errorf("a join timeout of %v is less than 0", c.JoinTimeout)
	}
	for i, r := range c.Ranks {
		switch {
		case r < 0 || r >= c.Size:
			return fmt.Errorf("rank %d of process %d is not in 0..%d", r, c.Process, c.Size-1)
		case i > 0 && r == c.Ranks[i-1]:
			return fmt.Errorf("process %d hosts rank %d twice", c.Process, r)
		}
	}
	return nil
}

func (c *Config) hello(address string) hello {
	return hello{
		process: c.Process, processes: c.Processes, size: c.Size,
		ranks: c.Ranks, address: address,
	}
}
