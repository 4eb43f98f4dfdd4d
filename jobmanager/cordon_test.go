package jobmanager

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"
	"google.golang.org/grpc/codes"

	"github.com/superstep-ml/superstep/internal/security"
	"github.com/superstep-ml/superstep/internal/wire"
)

// cordoned returns the cordons of the task managers that a client sees, by name and state.
func cordoned(t testing.TB, c *wire.Client) map[string]*wire.Cordon {
	reply, err := c.TaskManagers(bounded(t), &wire.TaskManagersRequest{})
	require.NoError(t, err)
	all := map[string]*wire.Cordon{}
	for _, n := range reply.TaskManagers {
		all[n.Name+" "+n.State] = n.Cordon
	}
	return all
}

// TestCordon cordons a task manager, starts the job manager again, and uncordons the task
// manager. A job must wait until then, and say why.
func TestCordon(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	begun := time.Now()
	in := func(c *Config) { c.Dir, c.Now = dir, func() time.Time { return now.Add(time.Since(begun)) } }
	m := start(t, in)
	c := dial(t, m, testToken, nil)
	tm := join(t, c, registration("a", 2))
	going := submit(t, c, specOf(t, 1))
	d := tm.run()

	reply, err := c.Cordon(bounded(t), &wire.CordonRequest{TaskManager: "tm-a", Reason: "its fan is replaced"})
	require.NoError(t, err)
	since := reply.Cordon.Since
	require.WithinRange(t, since, now, now.Add(patience))
	require.Equal(t, wire.CordonReply{TaskManager: "tm-a", Cordon: &wire.Cordon{Reason: "its fan is replaced", Since: since}, Changed: true, Registered: 1, Workers: 1}, *reply)
	reply, err = c.Cordon(bounded(t), &wire.CordonRequest{TaskManager: "tm-a"})
	require.NoError(t, err)
	require.False(t, reply.Changed)
	require.Equal(t, "its fan is replaced", reply.Cordon.Reason)
	require.True(t, since.Equal(reply.Cordon.Since))
	stats := m.Stats()
	require.Equal(t, 2, stats.Cordoned)
	require.Zero(t, stats.Free)
	tm.succeed(d.WorkerRef, "")
	_, last := follow(t, c, &wire.FollowRequest{Job: going})
	require.Equal(t, wire.JobFinished, last.State, "workers that run must go on")
	require.NoError(t, m.Close())
	tm.leave()

	m = start(t, in)
	c = dial(t, m, testToken, nil)
	require.Equal(t, "its fan is replaced", cordoned(t, c)["tm-a absent"].Reason)
	tm = join(t, c, registration("a", 2))
	id := submit(t, c, specOf(t, 1))
	info, err := c.Show(bounded(t), &wire.ShowRequest{Job: id})
	require.NoError(t, err)
	require.Equal(t, "waiting for 1 slot: there is no task manager of linux/amd64 that is not cordoned; 2 slots on task manager tm-a are cordoned", info.Detail)
	require.True(t, since.Equal(cordoned(t, c)["tm-a alive"].Since))
	reply, err = c.Uncordon(bounded(t), &wire.UncordonRequest{TaskManager: "tm-a"})
	require.NoError(t, err)
	require.Equal(t, wire.CordonReply{TaskManager: "tm-a", Changed: true, Registered: 1, Workers: 1, Slots: 2}, *reply, "the job that waited must have got a worker")
	tm.succeed(tm.run().WorkerRef, "")
	reply, err = c.Uncordon(bounded(t), &wire.UncordonRequest{TaskManager: "tm-a"})
	require.NoError(t, err)
	require.False(t, reply.Changed)
	require.Nil(t, cordoned(t, c)["tm-a alive"])
	require.NoError(t, m.Close())
	m = start(t, in)
	require.Empty(t, cordoned(t, dial(t, m, testToken, nil)))
}

// TestCordonsThatAreRefused requires that wrong requests are refused, with what to do, and change
// nothing.
func TestCordonsThatAreRefused(t *testing.T) {
	t.Parallel()
	m := start(t)
	c := dial(t, m, testToken, nil)
	join(t, c, registration("alpha", 1))
	join(t, c, registration("beta", 1))
	for name, want := range map[string]string{
		"tm-aplha":                `there is no task manager "tm-aplha"; did you mean "tm-alpha"?: see superstep taskmanagers`,
		"":                        `there is no task manager "": see superstep taskmanagers`,
		"zzz":                     `there is no task manager "zzz": see superstep taskmanagers`,
		"\xff":                    `there is no task manager "\xff": see superstep taskmanagers`,
		strings.Repeat("x", 9999): `there is no task manager "` + strings.Repeat("x", 100) + `": see superstep taskmanagers`,
	} {
		_, err := c.Cordon(bounded(t), &wire.CordonRequest{TaskManager: name})
		require.EqualError(t, err, want)
		require.Equal(t, codes.NotFound, wire.Code(err))
		_, err = c.Uncordon(bounded(t), &wire.UncordonRequest{TaskManager: name})
		require.EqualError(t, err, want)
	}
	for _, reason := range []string{"two\nlines", strings.Repeat("x", wire.MaxReason+1), "\x1b[2J"} {
		_, err := c.Cordon(bounded(t), &wire.CordonRequest{TaskManager: "tm-beta", Reason: reason})
		require.Equal(t, codes.InvalidArgument, wire.Code(err))
	}
	stranger := dial(t, m, security.Token{}, nil)
	_, err := stranger.Cordon(bounded(t), &wire.CordonRequest{TaskManager: "tm-beta"})
	require.Equal(t, codes.Unauthenticated, wire.Code(err))
	_, err = stranger.Uncordon(bounded(t), &wire.UncordonRequest{TaskManager: "tm-beta"})
	require.Equal(t, codes.Unauthenticated, wire.Code(err))
	require.Equal(t, map[string]*wire.Cordon{"tm-alpha alive": nil, "tm-beta alive": nil}, cordoned(t, c))
	require.NoError(t, m.Close())
	_, err = m.Cordon(bounded(t), &wire.CordonRequest{TaskManager: "tm-beta"})
	require.EqualError(t, err, "the job manager stops")
}

// TestCordonsThatCannotBeRecorded requires that a cordon that cannot be recorded is an error and
// changes nothing, and that this does not delay the client.
func TestCordonsThatCannotBeRecorded(t *testing.T) {
	t.Parallel()
	m := start(t)
	c := dial(t, m, testToken, nil)
	join(t, c, registration("a", 1))
	_, err := c.Cordon(bounded(t), &wire.CordonRequest{TaskManager: "tm-a"})
	require.NoError(t, err)
	require.NoError(t, m.history.close())
	_, err = c.Cordon(bounded(t), &wire.CordonRequest{TaskManager: "tm-a", Reason: "new"})
	require.Equal(t, codes.Unavailable, wire.Code(err))
	require.ErrorContains(t, err, "so nothing changes for task manager tm-a: write the history of jobs: ")
	_, err = c.Uncordon(bounded(t), &wire.UncordonRequest{TaskManager: "tm-a"})
	require.Equal(t, codes.Unavailable, wire.Code(err))
	all := cordoned(t, c)
	require.Empty(t, all["tm-a alive"].Reason)
}

// TestDamagedCordon damages the record of a cordon. The task manager must stay cordoned, for a
// reason that says so, also after a further restart.
func TestDamagedCordon(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	in := func(c *Config) { c.Dir = dir }
	m := start(t, in)
	c := dial(t, m, testToken, nil)
	join(t, c, registration("a", 1))
	join(t, c, registration("b", 1))
	for _, name := range []string{"tm-a", "tm-b"} {
		_, err := c.Cordon(bounded(t), &wire.CordonRequest{TaskManager: name, Reason: "reason of " + name})
		require.NoError(t, err)
	}
	require.NoError(t, m.Close())
	db, err := bbolt.Open(dir+"/"+historyName, 0o600, nil)
	require.NoError(t, err)
	require.NoError(t, db.Update(func(tx *bbolt.Tx) error {
		b := tx.Bucket(cordonsBucket)
		v := bytes.Clone(b.Get([]byte("tm-a")))
		v[3] ^= 1
		return b.Put([]byte("tm-a"), v)
	}))
	require.NoError(t, db.Close())
	for range 2 {
		m = start(t, in)
		all := cordoned(t, dial(t, m, testToken, nil))
		require.Len(t, all, 2)
		require.Equal(t, "why and since when is lost, as the history was damaged (history.db.damaged-1)", all["tm-a absent"].Reason)
		require.Equal(t, "reason of tm-b", all["tm-b absent"].Reason)
		require.NoError(t, m.Close())
	}
}
