package peerlink

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// TestDispatch requires that each of several endpoints of a port gets the connections with its
// kind, scope and epoch.
func TestDispatch(t *testing.T) {
	p, from := listen(t, nil), listen(t, nil)
	endpoints := []Endpoint{{Kind: Rows, Epoch: 3}, {Kind: Lane, Scope: "a"}, {Kind: Lane, Scope: "b", Epoch: 7}, {Kind: Control, Scope: "a"}}
	var came []chan *Caller
	for _, d := range endpoints {
		_, c := open(t, p, d)
		came = append(came, c)
	}
	for i, d := range endpoints {
		for n := range uint32(3) {
			want := Hello{Kind: d.Kind, Scope: d.Scope, Epoch: d.Epoch, From: n, To: 8, Size: 9, Channel: 10, Try: 11, Sums: n == 1}
			nc, err := dial(t, from, p, want)
			require.NoError(t, err)
			c := <-came[i]
			require.Equal(t, want, c.Hello)
			same(t, nc, c)
		}
	}
	for _, c := range came {
		require.Empty(t, c)
	}
}

// TestRefusals requires that the dialer of a refused connection gets the reason, and whether
// another try may succeed.
func TestRefusals(t *testing.T) {
	p, from := listen(t, nil), listen(t, nil)
	_, err := p.Open(Endpoint{Kind: Lane, Scope: "g", Epoch: 5, Serve: func(c *Caller) error {
		switch c.Hello.Channel {
		case 1:
			return Refuse("channel %d is taken", c.Hello.Channel)
		case 2:
			return RefuseLater("not now")
		}
		return errors.New("no")
	}})
	require.NoError(t, err)
	for says, c := range map[string]struct {
		hello Hello
		final bool
	}{
		`attempt 4 of the lane of group "g" is over: this is attempt 5`:     {Hello{Kind: Lane, Scope: "g", Epoch: 4}, true},
		`this is still attempt 5 of the lane of group "g", not 6`:           {Hello{Kind: Lane, Scope: "g", Epoch: 6}, false},
		`nobody here expects such a lane: this is group "g"`:                {Hello{Kind: Lane, Scope: "h", Epoch: 5}, false},
		"nobody here expects a control connection: has the operation begun": {Hello{Kind: Control, Scope: "g", Epoch: 5}, false},
		"channel 1 is taken": {Hello{Kind: Lane, Scope: "g", Epoch: 5, Channel: 1}, true},
		"not now":            {Hello{Kind: Lane, Scope: "g", Epoch: 5, Channel: 2}, false},
		"no":                 {Hello{Kind: Lane, Scope: "g", Epoch: 5}, true},
	} {
		t.Run(says, func(t *testing.T) {
			t.Parallel()
			_, err := dial(t, from, p, c.hello)
			require.ErrorContains(t, err, says)
			require.ErrorIs(t, err, ErrRefused)
			require.Equal(t, c.final, IsFinal(err))
		})
	}
	other := listen(t, func(c *Config) { c.Job = "other" })
	_, err = dial(t, other, p, Hello{Kind: Lane, Scope: "g", Epoch: 5})
	require.EqualError(t, err, "it is a process of another job")
	require.True(t, IsFinal(err))
}

// TestEpochs requires that an endpoint of a later epoch replaces the open endpoint and notifies
// its owner, that connections after Welcome stay open, and that no endpoint of an earlier epoch
// can be opened any more.
func TestEpochs(t *testing.T) {
	p, from := listen(t, nil), listen(t, nil)
	told := make(chan uint32, 1)
	first, came := open(t, p, Endpoint{Kind: Control, Scope: "g", Epoch: 1, Replaced: func(epoch uint32) { told <- epoch }})
	old, err := dial(t, from, p, Hello{Kind: Control, Scope: "g", Epoch: 1})
	require.NoError(t, err)
	_, err = p.Open(Endpoint{Kind: Control, Scope: "g", Epoch: 1})
	require.EqualError(t, err, `attempt 1 of the control connection of group "g" is here already`)
	require.Empty(t, told)

	second, cameAgain := open(t, p, Endpoint{Kind: Control, Scope: "g", Epoch: 4})
	require.Equal(t, uint32(4), <-told)
	same(t, old, <-came)
	_, err = p.Open(Endpoint{Kind: Control, Scope: "g", Epoch: 3})
	require.EqualError(t, err, `attempt 3 of the control connection of group "g" is over: this is attempt 4`)
	_, err = dial(t, from, p, Hello{Kind: Control, Scope: "g", Epoch: 1})
	require.True(t, IsFinal(err))
	first.Close() // must not close the second endpoint
	_, err = dial(t, from, p, Hello{Kind: Control, Scope: "g", Epoch: 4})
	require.NoError(t, err)
	<-cameAgain
	second.Close()
	_, third := open(t, p, Endpoint{Kind: Control, Scope: "g", Epoch: 4})
	_, err = dial(t, from, p, Hello{Kind: Control, Scope: "g", Epoch: 4})
	require.NoError(t, err)
	<-third
}

// TestEarly requires that a connection that comes before its endpoint is open waits for it for
// earlyWait, and is then refused.
func TestEarly(t *testing.T) {
	for _, wait := range []time.Duration{time.Millisecond, earlyWait - time.Millisecond, earlyWait + time.Millisecond} {
		synctest.Test(t, func(t *testing.T) {
			p, err := Listen(Config{Net: newPipes(), Secret: testSecret})
			require.NoError(t, err)
			defer p.Close()
			_, before := open(t, p, Endpoint{Kind: Control, Scope: "g", Epoch: 1})
			dialed := make(chan error, 1)
			go func() {
				nc, err := p.Dial(t.Context(), "pipes", Hello{Kind: Control, Scope: "g", Epoch: 2})
				if err == nil {
					nc.Close()
				}
				dialed <- err
			}()
			time.Sleep(wait)
			synctest.Wait()
			o, came := open(t, p, Endpoint{Kind: Control, Scope: "g", Epoch: 2})
			defer o.Close()
			if err := <-dialed; wait > earlyWait {
				require.ErrorContains(t, err, "this is still attempt 1")
				require.False(t, IsFinal(err))
			} else {
				require.NoError(t, err)
				(<-came).Close()
			}
			require.Empty(t, before)
		})
	}
}

// TestSlowConnectionsAreClosed requires that a connection that sends nothing, or one byte per
// second, is closed after the time limit of a handshake.
func TestSlowConnectionsAreClosed(t *testing.T) {
	for _, hello := range [][]byte{nil, anyHello().encode()} {
		synctest.Test(t, func(t *testing.T) {
			net := newPipes()
			p, err := Listen(Config{Net: net})
			require.NoError(t, err)
			defer p.Close()
			nc, err := net.Dial(t.Context(), "")
			require.NoError(t, err)
			began := time.Now()
			for _, b := range hello {
				if _, err := nc.Write([]byte{b}); err != nil {
					break
				}
				time.Sleep(time.Second)
			}
			_, err = nc.Read(make([]byte, 1))
			require.ErrorIs(t, err, io.EOF)
			require.LessOrEqual(t, time.Since(began), handshakeTimeout+time.Second)
			require.NoError(t, nc.Close())
		})
	}
}

// TestClosing requires that Close of an endpoint or a port ends connections in their
// handshakes, and does not wait for their time limit.
func TestClosing(t *testing.T) {
	p, from := listen(t, nil), listen(t, nil)
	entered, leave := make(chan struct{}), make(chan struct{})
	o, err := p.Open(Endpoint{Kind: Rows, Serve: func(c *Caller) error {
		close(entered)
		<-leave
		return c.Welcome()
	}})
	require.NoError(t, err)
	dialed := make(chan error, 1)
	go func() {
		_, err := dial(t, from, p, Hello{Kind: Rows})
		dialed <- err
	}()
	<-entered
	closed := make(chan struct{})
	go func() { o.Close(); close(closed) }()
	for shut := false; !shut; {
		p.mu.Lock()
		shut = o.shut
		p.mu.Unlock()
	}
	close(leave)
	<-closed
	require.Error(t, <-dialed, "a connection must not be admitted after Close")

	early := make(chan error, 1)
	go func() {
		_, err := dial(t, from, p, Hello{Kind: Rows})
		early <- err
	}()
	for waits := 0; waits == 0; {
		p.mu.Lock()
		waits = p.early
		p.mu.Unlock()
	}
	silent := raw(t, p)
	require.NoError(t, p.Close())
	require.Error(t, <-early)
	_, err = silent.Read(make([]byte, 1))
	require.Error(t, err)
	_, err = p.Open(Endpoint{Kind: Lane})
	require.ErrorIs(t, err, ErrClosed)
}

// TestPorts requires that Listen takes the first free port of a range, and returns an error if
// no port is free or the range is invalid.
func TestPorts(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	taken := l.Addr().(*net.TCPAddr).Port
	in := func(first, last int) (*Port, error) {
		return Listen(Config{FirstPort: first, LastPort: last})
	}
	_, err = in(taken, taken)
	require.ErrorContains(t, err, fmt.Sprintf("listening at 127.0.0.1, ports %d-%d: none is free", taken, taken))
	p, err := in(taken, min(taken+50, 65535))
	require.NoError(t, err)
	defer p.Close()
	got := p.Bound().(*net.TCPAddr).Port
	require.Greater(t, got, taken)
	require.Equal(t, fmt.Sprintf("127.0.0.1:%d", got), p.Address())
	for _, bad := range [][2]int{{-1, 5}, {7, 6}, {1, 65536}} {
		_, err := in(bad[0], bad[1])
		require.ErrorContains(t, err, "there are no ports")
	}
	named, err := Listen(Config{Listen: "127.0.0.1:0", FirstPort: got, LastPort: got})
	require.ErrorContains(t, err, "none is free", "an address with port 0 must use the range")
	require.Nil(t, named)
}

// TestAddresses requires that Address is the advertised address, with the port of the listener
// if Advertise has no port.
func TestAddresses(t *testing.T) {
	for _, c := range []struct {
		listen, advertise, want string
		everywhere              bool
	}{
		{"", "", `^127\.0\.0\.1:\d+$`, false},
		{"0.0.0.0", "", `^\[::\]:\d+$`, true},
		{"0.0.0.0", "node7", `^node7:\d+$`, false},
		{"0.0.0.0:0", "node7:71", `^node7:71$`, false},
		{"127.0.0.1", "10.0.0.1:0", `^10\.0\.0\.1:\d+$`, false},
	} {
		p := listen(t, func(cfg *Config) { cfg.Listen, cfg.Advertise = c.listen, c.advertise })
		require.Regexp(t, c.want, p.Address())
		require.Equal(t, c.everywhere, p.Everywhere())
	}
	for says, cfg := range map[string]Config{
		`the port "http" to advertise is not a number from 1 to 65535`: {Advertise: "host:http"},
		"listening at nowhere.invalid:0":                               {Listen: "nowhere.invalid"},
	} {
		_, err := Listen(cfg)
		require.ErrorContains(t, err, says)
	}
}

// TestRetry requires that Retry tries again until a try succeeds, its error is final, or the
// context ends.
func TestRetry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tries := 0
		try := func(until int, err error) func(context.Context) (int, error) {
			tries = 0
			return func(ctx context.Context) (int, error) {
				if tries++; tries < until {
					return 0, fmt.Errorf("try %d", tries)
				}
				return tries, err
			}
		}
		n, err := Retry(t.Context(), try(9, nil))
		require.NoError(t, err)
		require.Equal(t, 9, n)
		_, err = Retry(t.Context(), try(3, Final(io.EOF)))
		require.ErrorIs(t, err, io.EOF)
		require.Equal(t, 3, tries)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		_, err = Retry(ctx, func(ctx context.Context) (int, error) {
			if tries++; tries > 10 {
				<-ctx.Done()
				return 0, Final(ctx.Err())
			}
			return 0, fmt.Errorf("try %d", tries)
		})
		require.EqualError(t, err, "try 10", "the error must not be one that only reports the end of the context")
	})
}

// TestPeerErrors requires the exact texts of errors with the peer, its address, the reason and
// the operation.
func TestPeerErrors(t *testing.T) {
	for want, e := range map[string]*PeerError{
		"worker 3 (10.0.0.2:4711) was silent for 4s":                            {Worker: true, Rank: 3, Address: "10.0.0.2:4711", Reason: "was silent for 4s"},
		"rank 1 closed its connection, noticed by rank 2 in Barrier #4":         {Rank: 1, Reporter: 2, During: "Barrier #4", Reason: "closed its connection"},
		"rank 0 (a:1) sent what was damaged, noticed by rank 0 in Broadcast #1": {Address: "a:1", During: "Broadcast #1", Reason: "sent what was damaged", Kind: ErrDamaged},
	} {
		require.EqualError(t, e, want)
		require.Equal(t, e.Kind == nil, e.PeerLost(), "PeerLost must return false for damage, and only for damage")
	}
}
