package core

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/internal/wire"
)

// registerNamed registers a task manager with the given name on a connection.
func registerNamed(c *Core, conn int, id, name string, slots int) {
	c.Step(0, Registered{Conn: conn, Register: wire.Register{Version: wire.Version, ID: id, Name: name, Incarnation: "1", Slots: slots, Executable: anyHash}})
}

// TestCordonReplies compares the answers to requests that cordon and uncordon, and the names for
// which there can be requests.
func TestCordonReplies(t *testing.T) {
	since := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	c := New(Config{Cordons: map[string]wire.Cordon{"gone": {Reason: "old", Since: since}}})
	registerNamed(c, 1, "1", "b", 4)
	registerNamed(c, 2, "2", "a", 3)
	registerNamed(c, 3, "3", "b", 2) // a second task manager of this name
	registerNamed(c, 4, "4", "left", 8)
	c.Step(0, Left{Conn: 4})
	require.Equal(t, []string{"a", "b", "gone", "left"}, c.TaskManagerNames())
	c.Step(0, Submitted{ID: "j", Slots: 9})
	require.Nil(t, c.Cordon("b"))
	require.Equal(t, wire.CordonReply{TaskManager: "b", Registered: 2, Workers: 2, Slots: 9}, c.CordonReply("b"))

	cordon := c.NextCordon("b", "", since)
	require.Equal(t, wire.Cordon{Since: since}, cordon)
	c.Step(0, Cordoned{TaskManager: "b", Cordon: cordon})
	require.Equal(t, wire.CordonReply{TaskManager: "b", Cordon: &cordon, Registered: 2, Workers: 2, Slots: 3}, c.CordonReply("b"))
	o := c.Overview()
	require.Equal(t, 9, o.Slots)
	require.Equal(t, 6, o.Cordoned)
	later := since.Add(time.Hour)
	require.Equal(t, wire.Cordon{Since: since}, c.NextCordon("b", "", later))
	require.Equal(t, wire.Cordon{Since: since, Reason: "fan"}, c.NextCordon("b", "fan", later))
	require.Equal(t, wire.Cordon{Since: since, Reason: "old"}, c.NextCordon("gone", "", later))

	c.Step(0, Cordoned{TaskManager: "a", Cordon: cordon})
	require.Zero(t, c.CordonReply("a").Slots)
	c.Step(0, Heartbeat{Conn: 1, Heartbeat: wire.Heartbeat{Ailing: "its disk is full"}})
	c.Step(0, Uncordoned{TaskManager: "b"})
	require.Equal(t, wire.CordonReply{TaskManager: "b", Registered: 2, Workers: 2, Slots: 2}, c.CordonReply("b"), "slots of an ailing task manager must not count")
	c.Step(0, Disconnected{Conn: 3})
	require.Zero(t, c.CordonReply("b").Slots, "slots of a task manager that is away must not count")

	var names []string
	for _, n := range c.TaskManagers(0) {
		names = append(names, n.Name+" "+n.State)
		require.Equal(t, n.Name == "a" || n.Name == "gone", n.Cordon != nil, n.Name)
	}
	require.Equal(t, []string{"a alive", "b alive", "b away", "left left", "gone absent"}, names)
	c.Step(0, Uncordoned{TaskManager: "gone"})
	require.Equal(t, []string{"a", "b", "left"}, c.TaskManagerNames())
}
