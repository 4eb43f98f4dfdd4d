package simulate

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"
)

// Network describes a network: the hosts of ranks, the costs of links and cores, and
// irregularities. It is plain data. In its JSON form, the names of fields are written with
// underscores (ranks_per_host). Times are in seconds, sizes in bytes. A cost of 0 means no
// cost. A capacity of 0 means that it is unlimited.
type Network struct {
	// Name is shown to users.
	Name string `json:"name,omitempty"`

	// RanksPerHost is the number of consecutive ranks on one host; 0 stands for 1. Placement,
	// if given, has the host of each rank, and RanksPerHost is ignored.
	RanksPerHost int   `json:"ranks_per_host,omitempty"`
	Placement    []int `json:"placement,omitempty"`

	// HostsPerRack is the number of consecutive hosts in one rack; 0 puts all hosts into one
	// rack.
	HostsPerRack int `json:"hosts_per_rack,omitempty"`

	// Cores is the number of cores of a host, shared by its ranks; 0 is unlimited.
	Cores int `json:"cores,omitempty"`

	// Host is the link between ranks of one host. All ranks of the host share its bandwidth,
	// which is the bandwidth of the host's memory. Rack is the link between hosts of one rack.
	// Its bandwidth is the bandwidth of a host's NIC in each direction. Spine is the link
	// between racks: a rack's uplink and downlink have Spine.Bandwidth for each of its hosts,
	// divided by Oversubscription (0 stands for 1).
	Host             Link    `json:"host"`
	Rack             Link    `json:"rack"`
	Spine            Link    `json:"spine"`
	Oversubscription float64 `json:"oversubscription,omitempty"`

	// SendOverhead and RecvOverhead are core time for each segment of a message.
	SendOverhead float64 `json:"send_overhead,omitempty"`
	RecvOverhead float64 `json:"recv_overhead,omitempty"`

	// WakeUp is additional core time if a message arrives at a rank that only waits: the rank
	// sleeps, and has to be scheduled again.
	WakeUp float64 `json:"wake_up,omitempty"`

	// SendCopy and RecvCopy are core time per byte for the copies of messages in the kernel.
	// Copy is core time per byte copied within a rank. Gamma is core time per byte folded.
	SendCopy float64 `json:"send_copy,omitempty"`
	RecvCopy float64 `json:"recv_copy,omitempty"`
	Copy     float64 `json:"copy,omitempty"`
	Gamma    float64 `json:"gamma,omitempty"`

	// Window bounds the bytes in a channel that are sent but not received yet. A segment longer
	// than Window is sent when all earlier bytes of the channel are received. 0 means that
	// every send waits until its data is received (rendezvous).
	Window int `json:"window"`

	// Jitter lengthens each latency and each use of a core by a random factor 1 + Jitter·5u⁴
	// with u uniform in [0, 1). The mean factor is 1 + Jitter. Most factors are much closer to
	// 1, and a few are up to 1 + 5·Jitter. The factors depend on Seed.
	Jitter float64 `json:"jitter,omitempty"`
	Seed   uint64  `json:"seed,omitempty"`

	// Stragglers maps ranks to factors. The use of cores and of the NIC by such a rank takes
	// longer by its factor.
	Stragglers map[int]float64 `json:"stragglers,omitempty"`
}

// Link is a class of links.
type Link struct {
	Latency   float64 `json:"latency,omitempty"`   // seconds
	Bandwidth float64 `json:"bandwidth,omitempty"` // bytes per second; 0 is unlimited
}

// DefaultWindow is the Window of the presets. It is about the number of bytes that the kernels
// at both ends of a TCP connection buffer together.
const DefaultWindow = 4 << 20

// Read reads the JSON form of a network and validates it. An unknown field is an error. Errors
// of syntax contain the line and the column.
func Read(r io.Reader) (*Network, error) {
	text, err := io.ReadAll(r)
	if err != nil {
		return nil, fmt.Errorf("network: %w", err)
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	n := new(Network)
	if err := d.Decode(n); err != nil {
		return nil, fmt.Errorf("network: %s: %w", position(text, failedAt(err, d, text)), err)
	}
	end := d.InputOffset()
	if rest := bytes.TrimLeft(text[end:], " \t\r\n"); len(rest) > 0 {
		return nil, fmt.Errorf("network: %s: something follows the closing brace", position(text, int64(len(text)-len(rest))))
	}
	if err := n.Validate(); err != nil {
		return nil, err
	}
	return n, nil
}

// failedAt returns the offset in text at which decoder d failed with err.
func failedAt(err error, d *json.Decoder, text []byte) int64 {
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	switch {
	case errors.As(err, &syntax):
		return syntax.Offset - 1 // Offset includes the wrong byte
	case errors.As(err, &kind):
		return kind.Offset - 1
	case errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF):
		return int64(len(text))
	}
	// The error about an unknown field has no offset, but its message contains the name of the
	// field.
	if _, name, ok := strings.Cut(err.Error(), "unknown field "); ok {
		if at := bytes.Index(text, []byte(name)); at >= 0 {
			return int64(at)
		}
	}
	return d.InputOffset()
}

// position returns the line and the column of an offset. Both are counted from 1, and columns
// are characters.
func position(text []byte, offset int64) string {
	before := text[:min(max(offset, 0), int64(len(text)))]
	line := 1 + bytes.Count(before, []byte("\n"))
	column := 1 + utf8.RuneCount(before[bytes.LastIndexByte(before, '\n')+1:])
	return fmt.Sprintf("line %d, column %d", line, column)
}

// Validate returns an error if a network is invalid. The error names the field as in the JSON
// form.
func (n *Network) Validate() error {
	var errs []error
	atLeast := func(field string, v, least float64, unit string) {
		if !(v >= least && v <= maxCost) {
			errs = append(errs, fmt.Errorf("network: %s is %v: want %s (to %g)", field, v, unit, maxCost))
		}
	}
	count := func(field string, v int, zero string) {
		if v < 0 || v > maxCount {
			errs = append(errs, fmt.Errorf("network: %s is %d: want a number from 0 (%s) to %d", field, v, zero, maxCount))
		}
	}
	count("ranks_per_host", n.RanksPerHost, "one rank a host")
	count("hosts_per_rack", n.HostsPerRack, "one rack")
	count("cores", n.Cores, "unlimited")
	if n.Window < 0 {
		errs = append(errs, fmt.Errorf("network: window is %d: want bytes from 0 on (0: every send waits for its receive)", n.Window))
	}
	for r, h := range n.Placement {
		if h < 0 || h >= maxCount {
			errs = append(errs, fmt.Errorf("network: placement puts rank %d on host %d: want 0 to %d", r, h, maxCount-1))
		}
	}
	for _, c := range []struct {
		name string
		link Link
	}{{"host", n.Host}, {"rack", n.Rack}, {"spine", n.Spine}} {
		atLeast(c.name+".latency", c.link.Latency, 0, "seconds from 0 on")
		if b := c.link.Bandwidth; b != 0 && !(b >= 1 && b <= maxBandwidth) {
			errs = append(errs, fmt.Errorf("network: %s.bandwidth is %v: want bytes per second, 1 to %g, or 0 (unlimited)", c.name, b, maxBandwidth))
		}
	}
	if n.Oversubscription != 0 {
		atLeast("oversubscription", n.Oversubscription, 1, "a factor from 1 on")
	}
	atLeast("send_overhead", n.SendOverhead, 0, "seconds from 0 on")
	atLeast("recv_overhead", n.RecvOverhead, 0, "seconds from 0 on")
	atLeast("wake_up", n.WakeUp, 0, "seconds from 0 on")
	atLeast("send_copy", n.SendCopy, 0, "seconds per byte from 0 on")
	atLeast("recv_copy", n.RecvCopy, 0, "seconds per byte from 0 on")
	atLeast("copy", n.Copy, 0, "seconds per byte from 0 on")
	atLeast("gamma", n.Gamma, 0, "seconds per byte from 0 on")
	atLeast("jitter", n.Jitter, 0, "a share from 0 on")
	for _, r := range slices.Sorted(maps.Keys(n.Stragglers)) {
		if r < 0 {
			errs = append(errs, fmt.Errorf("network: stragglers names rank %d: want ranks from 0 on", r))
		}
		atLeast(fmt.Sprintf("stragglers[%d]", r), n.Stragglers[r], 1, "a factor from 1 on")
	}
	return errors.Join(errs...)
}

// These are bounds on the values of a network. They ensure that counts can index resources, and
// that no sum of costs overflows, so that every valid network can be simulated.
const (
	maxCount     = 1 << 20
	maxCost      = 1e9
	maxBandwidth = 1e18
)

// Clone returns a deep copy of n.
func (n *Network) Clone() *Network {
	c := *n
	c.Placement, c.Stragglers = slices.Clone(n.Placement), maps.Clone(n.Stragglers)
	return &c
}

// hostOf returns the host of a rank.
func (n *Network) hostOf(rank int) int {
	if n.Placement != nil {
		return n.Placement[rank]
	}
	return rank / max(n.RanksPerHost, 1)
}

// rackOf returns the rack of a host.
func (n *Network) rackOf(host int) int {
	if n.HostsPerRack == 0 {
		return 0
	}
	return host / n.HostsPerRack
}

// hosts returns one more than the largest host number of p ranks.
func (n *Network) hosts(p int) int {
	if n.Placement != nil {
		return slices.Max(n.Placement[:p]) + 1
	}
	return n.hostOf(p-1) + 1
}

// uplink returns the bandwidth between a rack and the other racks, in each direction; 0 means
// unlimited.
func (n *Network) uplink() float64 {
	rate := n.Spine.Bandwidth * float64(n.HostsPerRack)
	if n.Oversubscription > 0 {
		rate /= n.Oversubscription
	}
	return rate
}

// factor returns the factor by which a rank is slower than a rank that is not a straggler.
func (n *Network) factor(rank int) float64 {
	if f, ok := n.Stragglers[rank]; ok {
		return f
	}
	return 1
}

// interchangeable returns a number u such that the network is invariant under all relabellings
// that move whole blocks of u consecutive ranks. It returns 0 if there is no such u for p
// ranks. No two blocks share a resource.
func (n *Network) interchangeable(p int) int {
	if n.Placement != nil || len(n.Stragglers) > 0 || n.Jitter > 0 {
		return 0
	}
	host := max(n.RanksPerHost, 1)
	unit := host
	if n.HostsPerRack > 0 && p > host*n.HostsPerRack {
		unit = host * n.HostsPerRack
	}
	if p%unit != 0 || p == unit {
		return 0
	}
	return unit
}
