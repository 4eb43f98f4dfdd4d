package simulate

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Presets returns the names of the networks that Preset knows.
func Presets() []string { return []string{"10gbe", "two-tier", "loopback"} }

// Preset returns a new network for the given name. The names are:
//
//   - 10gbe: one rank per host, all hosts on one switch, 10 Gbit/s (0.8 ns per byte), 50 µs
//     latency, 5 µs of core time for each message on both sides, two cores for the network;
//   - two-tier: the same hosts in racks of 16, whose uplinks have a quarter of the total
//     bandwidth of their hosts, and 15 µs more latency between racks;
//   - loopback: all ranks on one host, connected through the kernel. Its numbers were found by
//     Fit for a small virtual machine whose two processors are hyper-threads of one core. Since
//     they share memory and kernel, the two are together as fast as one processor that shares
//     neither.
func Preset(name string) (*Network, error) {
	tenGigabit := Network{
		Name: "10gbe", RanksPerHost: 1, Cores: 2,
		Host:         Link{Latency: 10e-6, Bandwidth: 5e9},
		Rack:         Link{Latency: 50e-6, Bandwidth: 1.25e9},
		Spine:        Link{Latency: 65e-6, Bandwidth: 1.25e9},
		SendOverhead: 5e-6, RecvOverhead: 5e-6,
		SendCopy: 0.1e-9, RecvCopy: 0.1e-9, Copy: 0.1e-9, Gamma: 0.15e-9,
		Window: DefaultWindow,
	}
	switch name {
	case "10gbe":
		return &tenGigabit, nil
	case "two-tier":
		n := tenGigabit
		n.Name, n.HostsPerRack, n.Oversubscription = "two-tier", 16, 4
		return &n, nil
	case "loopback":
		return &Network{
			Name: "loopback", RanksPerHost: 1 << 16, Cores: 1,
			Host: Link{Latency: 0.5e-6},
			// The sender's core time includes the delivery to the receiver's socket.
			SendOverhead: 4e-6, RecvOverhead: 1.7e-6, WakeUp: 3.4e-6,
			SendCopy: 0.11e-9, RecvCopy: 0.11e-9, Copy: 0.2e-9, Gamma: 0.04e-9,
			Window: DefaultWindow,
		}, nil
	}
	names := Presets()
	slices.Sort(names)
	return nil, fmt.Errorf("no network %q: there are %s", name, strings.Join(names, ", "))
}

// Named returns the preset with the given name. If there is no such preset, it reads the
// network from the file with that path. If the network in the file has no name, it gets the
// base name of the file.
func Named(name string) (*Network, error) {
	n, unknown := Preset(name)
	if unknown == nil {
		return n, nil
	}
	f, err := os.Open(name)
	if errors.Is(err, fs.ErrNotExist) && !strings.ContainsAny(name, "./\\") {
		return nil, fmt.Errorf("%w, and no such file", unknown)
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if n, err = Read(f); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if n.Name == "" {
		n.Name = filepath.Base(name)
	}
	return n, nil
}
