package membership_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"

	"github.com/superstep-ml/superstep/internal/peerlink"
	"github.com/superstep-ml/superstep/internal/transport/membership"
)

// Two processes, here two goroutines, find each other through a store. One fails, and both get
// the same cause.
func Example() {
	dir, err := os.MkdirTemp("", "store")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	store := membership.FileStore(dir)
	causes := make([]error, 2)
	var run sync.WaitGroup
	for p := range 2 {
		run.Go(func() {
			port, err := peerlink.Listen(peerlink.Config{})
			if err != nil {
				causes[p] = err
				return
			}
			defer port.Close()
			m, err := membership.Join(context.Background(), membership.Config{
				Process: p, Processes: 2, Ranks: []int{p}, Size: 2,
				Port:        port,
				Store:       store,
				Group:       "example",
				DataAddress: fmt.Sprintf("127.0.0.1:%d", 7000+p),
			})
			if err != nil {
				causes[p] = err
				return
			}
			defer m.Close()
			if p == 0 {
				fmt.Println("rank 1 is at", m.Table()[m.HostOf(1)].Address)
			} else {
				m.Fail(errors.New("rank 1 cannot read shard 5: the disk is full"))
			}
			<-m.Failed()
			causes[p] = m.Err()
		})
	}
	run.Wait()
	for p, err := range causes {
		fmt.Printf("process %d: %v\n", p, err)
	}
	// Output:
	// rank 1 is at 127.0.0.1:7001
	// process 0: rank 1 cannot read shard 5: the disk is full
	// process 1: rank 1 cannot read shard 5: the disk is full
}
