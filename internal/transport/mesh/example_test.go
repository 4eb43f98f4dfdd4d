package mesh_test

import (
	"context"
	"fmt"
	"sync"

	"github.com/superstep-ml/superstep/internal/transport/mesh"
)

// Each of three ranks sends its number to the next rank of a ring.
func ExampleNewLocal() {
	const p = 3
	group := mesh.NewLocal(p)
	var came [p]byte
	var all sync.WaitGroup
	for rank := range p {
		all.Go(func() {
			node := group.Node(rank)
			conns, err := node.Open(context.Background(), []mesh.Route{{Peer: (rank + 1) % p}, {Peer: (rank + p - 1) % p}})
			if err != nil {
				fmt.Println(err)
				return
			}
			header := mesh.Header{Seq: 1, Length: 1}
			if err := conns[0].Post(&header, []byte{byte(rank)}); err != nil {
				fmt.Println(err)
			}
			if err := conns[1].Next(&header); err != nil {
				fmt.Println(err)
			}
			if err := conns[1].Read(came[rank : rank+1]); err != nil {
				fmt.Println(err)
			}
		})
	}
	all.Wait()
	fmt.Println(came)
	// Output: [2 0 1]
}
