package transport_test

import (
	"context"
	"fmt"

	"github.com/superstep-ml/superstep/internal/transport"
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

func Example() {
	net := transport.NewMem(transport.DefaultCredits)
	defer net.Close()
	inbox := transport.Address{Edge: 0, Inbox: 1}
	p := printer{make(chan struct{})}
	if err := net.Listen(inbox, p); err != nil {
		fmt.Println(err)
		return
	}
	sender, err := net.Dial(inbox)
	if err != nil {
		fmt.Println(err)
		return
	}
	for i := range 3 {
		m := transport.Message{Shard: 7, Seq: int64(i), Last: i == 2}
		if err := sender.Send(context.Background(), m); err != nil {
			fmt.Println(err)
			return
		}
	}
	<-p.done
	// Output:
	// message 0 of shard 7
	// message 1 of shard 7
	// message 2 of shard 7
}
