package mesh_test

import (
	"context"
	"fmt"

	"github.com/superstep-ml/superstep/internal/transport/mesh"
)

// The second message from rank 0 to rank 1 is lost.
func ExampleNewFaulty() {
	plan := mesh.FaultPlan{Rules: []mesh.FaultRule{{Kind: mesh.Drop, From: 0, To: 1, Channel: mesh.Any, Message: 2}}}
	group := mesh.NewLocal(2)
	var ends [2]mesh.Conn
	for rank := range ends {
		node := mesh.NewFaulty(group.Node(rank), plan)
		conns, err := node.Open(context.Background(), []mesh.Route{{Peer: 1 - rank}})
		if err != nil {
			fmt.Println(err)
			return
		}
		ends[rank] = conns[0]
	}
	for seq := range uint64(3) {
		if err := ends[0].Post(&mesh.Header{Seq: seq + 1}, nil); err != nil {
			fmt.Println(err)
		}
	}
	for range 2 {
		var header mesh.Header
		if err := ends[1].Next(&header); err != nil {
			fmt.Println(err)
		}
		fmt.Println("operation", header.Seq)
	}
	// Output:
	// operation 1
	// operation 3
}
