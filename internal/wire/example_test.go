package wire_test

import (
	"bytes"
	"errors"
	"fmt"

	"google.golang.org/grpc/codes"

	"github.com/superstep-ml/superstep/internal/wire"
)

func Example_frames() {
	var pipe bytes.Buffer
	w := wire.NewWriter[wire.FromWorker](&pipe)
	_ = w.Write(&wire.FromWorker{Ready: &wire.Ready{Address: "127.0.0.1:40001"}})
	_ = w.Write(&wire.FromWorker{Finished: &wire.Finished{Outcome: []byte("report")}})

	r := wire.NewReader[wire.FromWorker](&pipe)
	for {
		m, err := r.Next()
		if err != nil {
			fmt.Println(err)
			return
		}
		switch {
		case m.Ready != nil:
			fmt.Println("ready at", m.Ready.Address)
		case m.Finished != nil:
			fmt.Printf("finished with %s\n", m.Finished.Outcome)
		}
	}
	// Output:
	// ready at 127.0.0.1:40001
	// finished with report
	// EOF
}

func ExampleError() {
	err := fmt.Errorf("show: %w", wire.Error(codes.NotFound, "there is no job %s", "20260102-iris"))
	fmt.Println(err)
	fmt.Println(wire.Code(err))
	fmt.Println(wire.Code(errors.New("something else")))
	// Output:
	// show: there is no job 20260102-iris
	// NotFound
	// Unknown
}
