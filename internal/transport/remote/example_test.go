package remote_test

import (
	"context"
	"fmt"

	"github.com/superstep-ml/superstep/internal/peerlink"
	"github.com/superstep-ml/superstep/internal/transport"
	"github.com/superstep-ml/superstep/internal/transport/remote"
)

// printer is a receiver that prints the messages.
type printer struct{ done chan struct{} }

func (p printer) Receive(m transport.Message) {
	defer m.Release()
	fmt.Printf("message %d of shard %d\n", m.Seq, m.Shard)
	if m.Last {
		close(p.done)
	}
}

// Of two workers, here in one process, worker 0 sends to an inbox of worker 1.
func Example() {
	var workers []*remote.Network
	var addresses []string
	for w := range 2 {
		port, err := peerlink.Listen(peerlink.Config{Job: "example", Secret: []byte("known to the workers of this attempt")})
		if err != nil {
			fmt.Println(err)
			return
		}
		defer port.Close()
		n, err := remote.New(remote.Config{
			Worker: w, Workers: 2, Attempt: 1, Port: port,
			Fail: func(err error) { fmt.Println("lost:", err) },
		})
		if err != nil {
			fmt.Println(err)
			return
		}
		defer n.Close()
		workers, addresses = append(workers, n), append(addresses, n.Address())
	}
	for _, n := range workers {
		if err := n.Connect(addresses); err != nil {
			fmt.Println(err)
			return
		}
	}
	inbox := transport.Address{Edge: 3, Inbox: 7, Worker: 1}
	p := printer{make(chan struct{})}
	if err := workers[1].Listen(inbox, p); err != nil {
		fmt.Println(err)
		return
	}
	sender, err := workers[0].Dial(inbox)
	if err != nil {
		fmt.Println(err)
		return
	}
	for i := range 3 {
		m := transport.Message{Shard: 5, Seq: int64(i), Last: i == 2}
		if err := sender.Send(context.Background(), m); err != nil {
			fmt.Println(err)
			return
		}
	}
	<-p.done
	// Output:
	// message 0 of shard 5
	// message 1 of shard 5
	// message 2 of shard 5
}
