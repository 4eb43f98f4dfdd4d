package collective

import (
	"cmp"
	"context"
	"crypto/tls"
	"encoding/binary"
	"fmt"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/superstep-ml/superstep/collective/tune"
	"github.com/superstep-ml/superstep/internal/peerlink"
	"github.com/superstep-ml/superstep/internal/transport/membership"
	"github.com/superstep-ml/superstep/internal/transport/mesh"
)

// TCPConfig configures a group of ranks in several processes. The caller must set one of these
// sets of fields: Addresses; Store and Size; or Port, Leader and Size.
type TCPConfig struct {
	// Addresses has the host:port of each rank's process. Ranks of one process have the same
	// address. Only the address of rank 0 must be exact. Each other address only says where the
	// process of that rank listens: the host may be empty, and the port may be 0. Each rank
	// with port 0 has its own process.
	Addresses []string

	// Store lets the processes find each other if addresses are not known in advance: the
	// process of rank 0 writes its address to the Store, and the other processes read it. See
	// FileStore.
	Store Store
	Size  int // number of ranks; may be 0 with Addresses

	// Hosts has the ranks of each process. It is used only with Store or Port. If Hosts is nil,
	// each rank has its own process. With Addresses, ranks with equal addresses are in one
	// process.
	Hosts [][]int

	// Listen is the address at which this process listens. It is used only with Store. "" means
	// 127.0.0.1:0. To be reached from other machines, give "0.0.0.0:0" or the address of an
	// interface. A process listens at one port, for data and control.
	Listen string

	// Port, if given, is an open port of this process, such as the port of an engine's worker.
	// The group then opens no port of its own, and the settings of Port replace Listen, TLS,
	// Secret and SocketBuffer. Leader is the address of the port of rank 0's process, in place
	// of Addresses and Store.
	Port   *peerlink.Port
	Leader string

	// Group and Attempt distinguish groups. Connections from processes of an earlier attempt of
	// the same group are refused, so that remaining processes of the earlier attempt cannot
	// disturb this one. If a process joins a later attempt at the same Port, the earlier
	// attempt ends with an ErrReplaced.
	Group   string
	Attempt uint32

	// TLS, if given, encrypts and authenticates all connections. Certificates, RootCAs and
	// ClientCAs are used on both sides. A connecting process must present a certificate,
	// regardless of ClientAuth. If ClientCAs is nil, RootCAs is used to verify both sides.
	TLS *tls.Config

	// Secret, if given, is known only to the processes of the group. When a connection is made,
	// both sides first prove that they know the secret, without sending it. A process that
	// cannot prove it is refused.
	Secret []byte

	// NoChecksum omits the checksum of the data of each message. The checksum finds damage that
	// TCP's own checksum of 16 bits does not find. All processes must give the same value.
	// Under TLS there is no checksum in any case, since TLS authenticates the data.
	NoChecksum bool

	// Detection is how long a process may be silent before it counts as dead; 0 means 4 s. If a
	// process ends or a connection breaks, the group notices this immediately.
	Detection time.Duration

	// Stall bounds the time during which all ranks are in operations and no rank sends or
	// receives a byte, because a message was lost or ranks wait for each other. After that time
	// the group ends with an error that names the operation of each rank. 0 means 4 s. A
	// negative Stall means no bound. If an operator of the user can take longer than 4 s, Stall
	// must be longer or negative.
	Stall time.Duration

	// JoinTimeout bounds the wait for all processes to join; 0 means 30 s.
	JoinTimeout time.Duration

	// SocketBuffer is the size of the sockets' buffers in bytes. 0 leaves the size to the
	// system, which is usually faster.
	SocketBuffer int

	// Tuning chooses the algorithm for calls in which the caller names none. Only the Tuner of
	// rank 0 is used. Nil means tune.Default.
	Tuning *tune.Tuner

	Logger hclog.Logger // nil logs nothing
}

// Store lets the processes of a group find each other.
type Store = membership.Store

// FileStore returns a Store that keeps its data in the directory dir, which all processes must
// share.
func FileStore(dir string) Store { return membership.FileStore(dir) }

// TCPGroup is this process's part of a group of ranks in several processes. It gives the same
// guarantees as a LocalGroup, and the same bits for every distribution of ranks over processes.
type TCPGroup struct {
	local *LocalGroup
	mesh  *mesh.TCP
	home  *membership.Membership
	port  *peerlink.Port // the port that the group has opened; nil if TCPConfig.Port was given
	once  sync.Once
	err   error
	ended chan struct{} // closed when watch has returned
	stop  chan struct{}

	leaveOnce      sync.Once
	goodbyeContext context.Context // context of the call that leaves the membership; giveUp cancels it
	giveUp         context.CancelFunc
	left           chan error // receives the result of leaving the membership
}

// NewTCPGroup joins the given rank and the other ranks of its process to the group, and waits
// until all ranks have joined. The caller must close the group when its ranks are done.
func NewTCPGroup(ctx context.Context, rank int, cfg TCPConfig) (*TCPGroup, error) {
	if ctx == nil {
		ctx = context.Background()
	}
	size, hosts, err := cfg.hosts()
	if err != nil {
		return nil, fmt.Errorf("collective: %w", err)
	}
	process := slices.IndexFunc(hosts, func(ranks []int) bool { return slices.Contains(ranks, rank) })
	if process < 0 {
		return nil, fmt.Errorf("collective: rank %d in a group of %d", rank, size)
	}
	g := &TCPGroup{local: newGroup(size, hosts[process]), ended: make(chan struct{}), stop: make(chan struct{}), left: make(chan error, 1)}
	if cfg.Port == nil {
		g.port, err = peerlink.Listen(peerlink.Config{
			Listen: cfg.listen(hosts, process), TLS: cfg.TLS, Secret: cfg.Secret, Logger: cfg.Logger,
			Net: peerlink.TCP{SocketBuffer: cfg.SocketBuffer},
		})
		if err != nil {
			return nil, fmt.Errorf("collective: rank %d cannot join the group: %w", rank, err)
		}
		cfg.Port = g.port
	}
	g.mesh, err = mesh.JoinTCP(ctx, mesh.TCPConfig{
		Size: size, Ranks: hosts[process], Group: cfg.name(), Attempt: cfg.Attempt,
		Port: cfg.Port, NoChecksum: cfg.NoChecksum, ConnectTimeout: cfg.JoinTimeout,
		Join: func(ctx context.Context, _ string, states func() []membership.State) (mesh.Group, []membership.Peer, error) {
			var err error
			g.home, err = membership.Join(ctx, cfg.membership(size, hosts, process, states))
			if err != nil {
				return nil, nil, err
			}
			return g.home, g.home.Table(), nil
		},
	})
	if err != nil {
		if g.home != nil {
			g.home.Close()
		}
		g.closePort()
		return nil, fmt.Errorf("collective: rank %d cannot join the group: %w", rank, err)
	}
	t := cfg.Tuning
	if t == nil {
		t = tune.Default()
	} else if t.Network == nil { // calibration needs a network to start from
		full := *t
		full.Network = tune.Default().Network
		t = &full
	}
	g.goodbyeContext, g.giveUp = context.WithCancel(context.Background())
	g.local.net = newNetwork(g.mesh, size, hosts, process, t)
	g.local.net.sendGoodbye = g.depart
	go g.watch()
	return g, nil
}

// closePort closes the port that the group has opened itself, if any.
func (g *TCPGroup) closePort() error {
	if g.port == nil {
		return nil
	}
	return g.port.Close()
}

// name returns the name of the group. The name includes the byte order of this process unless
// it is little-endian, because all processes must have the same byte order: elements are sent
// as they are in memory.
func (cfg *TCPConfig) name() string {
	if binary.NativeEndian.Uint16([]byte{1, 0}) == 1 {
		return cfg.Group
	}
	return cfg.Group + " (big-endian)"
}

// listen returns the address at which a process without a Port listens.
func (cfg *TCPConfig) listen(hosts [][]int, process int) string {
	if len(cfg.Addresses) == 0 {
		return cfg.Listen
	}
	return cfg.Addresses[hosts[process][0]]
}

// membership returns the configuration of this process's membership in the group.
func (cfg *TCPConfig) membership(size int, hosts [][]int, process int, states func() []membership.State) membership.Config {
	m := membership.Config{
		Process: process, Processes: len(hosts), Ranks: hosts[process], Size: size, Store: cfg.Store, Coordinator: cfg.Leader,
		Port: cfg.Port, Group: cfg.name(), Attempt: cfg.Attempt,
		Detection: cfg.Detection, StallTimeout: cfg.Stall, JoinTimeout: cfg.JoinTimeout, State: states, Logger: cfg.Logger,
	}
	if len(cfg.Addresses) > 0 {
		m.Coordinator = cfg.Addresses[0]
	}
	return m
}

// watch ends the local group when another process or the mesh fails.
func (g *TCPGroup) watch() {
	defer close(g.ended)
	node := g.mesh.Node(g.local.ranks[0])
	select {
	case <-node.Failed():
		g.local.end(node.Err())
	case <-g.stop:
	}
}

// hosts returns the number of ranks, and the ranks of each process, beginning with the process
// of rank 0.
func (cfg *TCPConfig) hosts() (int, [][]int, error) {
	if len(cfg.Addresses) > 0 {
		for r, a := range cfg.Addresses {
			if _, _, err := net.SplitHostPort(a); err != nil && a != "" {
				return 0, nil, fmt.Errorf("rank %d at %q: %w", r, a, err)
			}
		}
		if cfg.Store != nil || cfg.Hosts != nil || cfg.Leader != "" {
			return 0, nil, fmt.Errorf("a group has either addresses, or a store and hosts")
		}
		if cfg.Size != 0 && cfg.Size != len(cfg.Addresses) {
			return 0, nil, fmt.Errorf("a group of %d ranks with %d addresses", cfg.Size, len(cfg.Addresses))
		}
		if len(cfg.Addresses) > 1 && !hasPort(cfg.Addresses[0]) {
			return 0, nil, fmt.Errorf("rank 0 at %q: the others need its host and port to find the group", cfg.Addresses[0])
		}
		var hosts [][]int
		place := map[string]int{}
		for r, a := range cfg.Addresses {
			h, ok := place[a]
			if !ok || !hasPort(a) {
				h = len(hosts)
				place[a] = h
				hosts = append(hosts, nil)
			}
			hosts[h] = append(hosts[h], r)
		}
		return len(cfg.Addresses), hosts, nil
	}
	if (cfg.Store == nil && (cfg.Port == nil || cfg.Leader == "")) || cfg.Size < 1 {
		return 0, nil, fmt.Errorf("a group needs the addresses of its ranks, or a store and its size")
	}
	if cfg.Hosts == nil {
		hosts := make([][]int, cfg.Size)
		for r := range hosts {
			hosts[r] = []int{r}
		}
		return cfg.Size, hosts, nil
	}
	seen := make([]bool, cfg.Size)
	hosts := make([][]int, len(cfg.Hosts))
	for h, ranks := range cfg.Hosts {
		if len(ranks) == 0 {
			return 0, nil, fmt.Errorf("process %d hosts no rank", h)
		}
		hosts[h] = slices.Sorted(slices.Values(ranks))
		for _, r := range ranks {
			if r < 0 || r >= cfg.Size || seen[r] {
				return 0, nil, fmt.Errorf("process %d hosts rank %d of %d, which is none or another's", h, r, cfg.Size)
			}
			seen[r] = true
		}
	}
	if r := slices.Index(seen, false); r >= 0 {
		return 0, nil, fmt.Errorf("no process hosts rank %d", r)
	}
	slices.SortFunc(hosts, func(a, b []int) int { return cmp.Compare(a[0], b[0]) })
	return cfg.Size, hosts, nil
}

// hasPort reports whether an address has a port other than 0. Ranks with the same such address
// are in one process.
func hasPort(address string) bool {
	_, port, err := net.SplitHostPort(address)
	return err == nil && port != "" && port != "0"
}

// Size returns the number of ranks of the whole group.
func (g *TCPGroup) Size() int { return g.local.size }

// Ranks returns the ranks of this process, in ascending order.
func (g *TCPGroup) Ranks() []int { return slices.Clone(g.local.ranks) }

// Rank returns the handle of a rank of this process. Every call with the same rank returns the
// same handle. Rank panics if the rank is in another process.
func (g *TCPGroup) Rank(rank int) *Comm {
	i := g.local.indexOf(rank)
	if i < 0 {
		panic(fmt.Sprintf("collective: rank %d is not of this process, which has %v of %d", rank, g.local.ranks, g.local.size))
	}
	return &g.local.comms[i]
}

// Abort ends the group for all ranks of all processes. See LocalGroup.Abort.
func (g *TCPGroup) Abort(err error) { g.local.Abort(err) }

// Err returns the error that ended the group, or nil if the group has not ended.
func (g *TCPGroup) Err() error { return g.local.Err() }

// depart starts to leave the membership, which completes when the ranks of this process are
// done. It does not wait.
func (g *TCPGroup) depart() {
	g.leaveOnce.Do(func() { go func() { g.left <- g.home.Leave(g.goodbyeContext) }() })
}

// closeTimeout bounds how long Close waits for the other processes to leave the membership.
const closeTimeout = 10 * time.Second

// Close leaves the group and waits until its connections and goroutines have ended. Ranks that
// still wait for a rank of this process get an error wrapping ErrLeft. Close is idempotent.
func (g *TCPGroup) Close() error {
	g.once.Do(func() {
		for i := range g.local.comms {
			g.local.comms[i].Close(nil)
		}
		close(g.stop)
		<-g.ended
		g.local.net.calls.close()
		g.local.net.trials.close()
		// Leave the membership before closing connections, so that all sent messages arrive and
		// the other processes do not take the closed connections for a failure.
		g.depart()
		late := time.AfterFunc(closeTimeout, g.giveUp)
		g.err = <-g.left
		late.Stop()
		g.giveUp()
		if err := g.mesh.Close(); g.err == nil {
			g.err = err
		}
		g.home.Close()
		if err := g.closePort(); g.err == nil {
			g.err = err
		}
	})
	return g.err
}
